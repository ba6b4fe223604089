//! A plan is tried on made-up rows before it is paid for, by the very code that will answer it: a question that can never be answered is not charged.

use super::frame;
use crate::engine;
use crate::error::{QueryError, planning};
use crate::evaluate::samples;
use crate::plan::{Asking, Groups, Plan};
use crate::source::Tables;
use datafusion::logical_expr::LogicalPlan;

impl Tables {
    /// Plans a question: nothing private is read.
    pub fn plan(&self, sql: &str, asking: &Asking) -> Result<Plan, QueryError> {
        self.planned(sql, &self.logical(sql)?, asking)
    }

    /// The same for a question that was read already. It is tried on made-up rows, so that one which can never be answered is not paid for.
    pub(crate) fn planned(&self, sql: &str, logical: &LogicalPlan, asking: &Asking) -> Result<Plan, QueryError> {
        let plan = self.outlined(sql, logical, asking)?;
        self.rehearse(&plan)?;
        Ok(plan)
    }

    /// Tries a plan on made-up rows.
    pub(super) fn rehearse(&self, plan: &Plan) -> Result<(), QueryError> {
        self.rehearse_parts(plan)?;
        if plan.parts.is_empty() { Ok(()) } else { self.rehearse_after(&plan.after) }
    }

    /// Tries its parts alone.
    pub(super) fn rehearse_parts(&self, plan: &Plan) -> Result<(), QueryError> {
        for part in &plan.parts {
            let tried = self.runtime.block_on(engine::rehearse(self.warehouse.context(), part))?;
            // Listed groups may be many, and their types are known already.
            if let Some((part, plain)) = tried.filter(|_| part.groups != Groups::Listed) {
                let (frame, _) = frame::Frame::of(&part, &plain)?;
                frame.rows(&(0..frame.groups.min(1)).collect::<Vec<_>>())?;
                frame::exact_columns(self, &part, &frame)?;
            }
        }
        Ok(())
    }

    /// Tries what is done with released tables on made-up ones.
    pub(crate) fn rehearse_after(&self, after: &LogicalPlan) -> Result<(), QueryError> {
        let after = samples::in_place_of(after).map_err(|error| planning(&error))?;
        for batch in self.collect(&after)? {
            batch.columns().iter().try_for_each(|column| frame::values(column).map(drop))?;
        }
        Ok(())
    }
}
