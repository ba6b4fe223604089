//! What the engine is given before there are tables.

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::functions;
use datafusion::functions_aggregate;
use datafusion::functions_window;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

/// An engine with the functions of plain columns and nothing that reads or writes other files than sources are made of: what is registered is carried by
/// the command, and functions of lists and formats that no source has are several megabytes.
pub(crate) fn engine(config: SessionConfig, runtime: Arc<RuntimeEnv>) -> SessionContext {
    let planners: Vec<Arc<dyn ExprPlanner>> = vec![
        Arc::new(functions::core::planner::CoreFunctionPlanner::default()),
        Arc::new(functions::datetime::planner::DatetimeFunctionPlanner),
        Arc::new(functions::unicode::planner::UnicodeFunctionPlanner),
        Arc::new(functions_aggregate::planner::AggregateFunctionPlanner),
        Arc::new(functions_window::planner::WindowFunctionPlanner),
    ];
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_expr_planners(planners)
        .with_scalar_functions(functions::all_default_functions())
        .with_aggregate_functions(functions_aggregate::all_default_aggregate_functions())
        .with_window_functions(functions_window::all_default_window_functions());
    SessionContext::new_with_state(state.build())
}
