//! The method that exists so that clients can try the experimental gate.

use loomd_protocol::{MockExperimentalMethodParams, MockExperimentalMethodResponse, RpcError};

/// `mock/experimentalMethod`
pub(crate) fn experimental(params: MockExperimentalMethodParams) -> Result<MockExperimentalMethodResponse, RpcError> {
    Ok(MockExperimentalMethodResponse { echoed: params.value })
}
