//! A method of [`Client`] for every row of the protocol's table of requests.

use loomd_protocol::*;
use pastey::paste;

use crate::client::Client;
use crate::error::Error;

macro_rules! methods {
    ($($variant:ident $method:literal ($params:ty) -> $result:ty;)*) => {
        /// Every request of the protocol.
        impl Client {
            $(method! { $variant $method ($params) -> $result })*
        }
    };
}

macro_rules! method {
    // [`Client::connect`] makes the handshake, once.
    (Initialize $method:literal ($params:ty) -> $result:ty) => {};
    ($variant:ident $method:literal ($params:ty) -> $result:ty) => {
        paste! {
            #[doc = concat!("`", $method, "`")]
            pub async fn [<$variant:snake>](&self, params: $params) -> Result<$result, Error> {
                self.call::<call::$variant>(params).await
            }
        }
    };
}

loomd_protocol::for_each_client_request!(methods);
