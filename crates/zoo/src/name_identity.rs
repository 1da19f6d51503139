//! Implements Eq, Ord, Hash, Debug and Display by the field `name`.

/// Implements comparison, order, hashing and formatting of a handle by its field `name`.
macro_rules! compared_by_name {
    ($handle:ty) => {
        impl PartialEq for $handle {
            fn eq(&self, other: &Self) -> bool {
                self.name == other.name
            }
        }

        impl Eq for $handle {}

        impl PartialOrd for $handle {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $handle {
            fn cmp(&self, other: &Self) -> Ordering {
                self.name.cmp(other.name)
            }
        }

        impl Hash for $handle {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.name.hash(state);
            }
        }

        impl fmt::Debug for $handle {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name)
            }
        }

        impl fmt::Display for $handle {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name)
            }
        }
    };
}
pub(crate) use compared_by_name;
