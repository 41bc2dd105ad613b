//! The method that exists so that clients can try the experimental gate.

use loomd_protocol::{MockExperimentalMethodParams, MockExperimentalMethodResponse, call};

use crate::answer::{Handled, answer};
use crate::context::Context;

/// `mock/experimentalMethod`
pub(crate) async fn experimental(
    _: &Context,
    params: MockExperimentalMethodParams,
) -> Handled<call::MockExperimentalMethod> {
    answer(MockExperimentalMethodResponse { echoed: params.value })
}
