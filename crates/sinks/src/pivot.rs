//! Converts one record per implementation to one row per recipe and shape, with eager, compiled and baseline columns:
//! the form of torchao's micro-benchmarks, from which both the CSV and the dashboard file are made.
//!
//! `eager` fills the eager column. The compiled column holds the fastest other implementation, since a compiler selects
//! among them. PyTorch has rows of its own, with `torch` in the eager column and the fastest `torch-compile*` in the
//! compiled column. Only records with status `ok` count. The baseline of a row is the recipe `baseline` without sparsity
//! under equal entry name, workload, dtype, device, shape and regime, so no row mixes regimes.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use calorimeter_case::record::{Record, Status, finite};
use calorimeter_case::{Case, Implementation, Name};

/// Implementations that share the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// PyTorch in another process.
    Torch,
    /// All others.
    Calorimeter,
}

impl Family {
    fn of(implementation: Implementation) -> Self {
        match implementation.name().as_str() {
            "torch" => Self::Torch,
            name if name.starts_with("torch-compile") => Self::Torch,
            _ => Self::Calorimeter,
        }
    }

    /// Name in rows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Calorimeter => "calorimeter",
        }
    }
}

/// Recipe at a shape that the user listed.
pub(crate) struct PivotRow<'a> {
    /// Case of the first arm; its implementation applies to that arm only.
    pub(crate) case: &'a Case,
    /// Implementations of the row.
    pub(crate) family: Family,
    /// True for a row of Calorimeter's implementations in a run that also has rows of PyTorch.
    pub(crate) needs_suffix: bool,
    pub(crate) m: u64,
    pub(crate) k: u64,
    pub(crate) n: u64,
    pub(crate) eager: PivotArm<'a>,
    pub(crate) compiled: PivotArm<'a>,
    pub(crate) baseline_eager: PivotArm<'a>,
    pub(crate) baseline_compiled: PivotArm<'a>,
}

/// Fastest successful record of an arm, if any.
#[derive(Clone, Copy, Default)]
pub(crate) struct PivotArm<'a>(pub(crate) Option<&'a Record>);

impl<'a> PivotArm<'a> {
    pub(crate) fn milliseconds(self) -> Option<f64> {
        nanos(self.0?).map(|nanos| nanos / 1e6)
    }

    /// Speed-up over `other`, rounded to two decimals as torchao stores it.
    pub(crate) fn speedup_over(self, other: PivotArm<'a>) -> Option<f64> {
        let ratio = finite(other.milliseconds()? / self.milliseconds()?)?;
        format!("{ratio:.2}").parse().ok()
    }

    fn or_faster(self, record: &'a Record) -> PivotArm<'a> {
        match self.0 {
            Some(best) if nanos(best) <= nanos(record) => self,
            _ => PivotArm(Some(record)),
        }
    }
}

/// Returns the rows in order of their first records. Implied baselines and shapes without m, k and n have no rows.
pub(crate) fn pivot_rows(records: &[Record]) -> Vec<PivotRow<'_>> {
    let mut arms: HashMap<ArmsKey, (PivotArm, PivotArm)> = HashMap::new();
    for record in records.iter().filter(|record| record.outcome.status == Status::Ok && nanos(record).is_some()) {
        let (eager, compiled) = arms.entry(ArmsKey::new(&record.case)).or_default();
        let arm = if is_eager(record.case.implementation) { eager } else { compiled };
        *arm = arm.or_faster(record);
    }
    let arms_of = |key: &ArmsKey| arms.get(key).copied().unwrap_or_default();

    let has_torch = records.iter().any(|record| Family::of(record.case.implementation) == Family::Torch);
    let mut rows = Vec::new();
    let mut seen = HashSet::new();
    for case in records.iter().map(|record| &record.case).filter(|case| !case.implied) {
        let key = ArmsKey::new(case);
        let (Some(m), Some(k), Some(n)) = (case.shape.get("m"), case.shape.get("k"), case.shape.get("n")) else {
            continue;
        };
        if !seen.insert((key, &case.shape_name)) {
            continue;
        }
        let (eager, compiled) = arms_of(&key);
        let (baseline_eager, baseline_compiled) = arms_of(&ArmsKey { recipe: Case::BASELINE, sparsity: None, ..key });
        let family = Family::of(case.implementation);
        let needs_suffix = has_torch && family == Family::Calorimeter;
        rows.push(PivotRow { case, family, needs_suffix, m, k, n, eager, compiled, baseline_eager, baseline_compiled });
    }
    rows
}

/// True for implementations without a compiler.
fn is_eager(implementation: Implementation) -> bool {
    implementation == Implementation::Eager || implementation.name().as_str() == "torch"
}

fn nanos(record: &Record) -> Option<f64> {
    record.time.time_ns.and_then(|time| finite(time.median))
}

/// Key of the arms of a row: the case without implementation, and its recipe or the baseline.
///
/// Borrowed instead of formatted, because long runs have many.
#[derive(Clone, Copy)]
struct ArmsKey<'a> {
    case: &'a Case,
    recipe: Name,
    sparsity: Option<Name>,
}

impl<'a> ArmsKey<'a> {
    fn new(case: &'a Case) -> ArmsKey<'a> {
        ArmsKey { case, recipe: case.recipe, sparsity: case.sparsity }
    }

    fn parts(&self) -> impl Eq + Hash + 'a {
        let Case { mode, name, workload, element, device, shape, regime, implementation, .. } = self.case;
        let family = Family::of(*implementation);
        (mode, name, workload, element, device, shape, regime, self.recipe, self.sparsity, family)
    }
}

impl PartialEq for ArmsKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for ArmsKey<'_> {}

impl Hash for ArmsKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}
