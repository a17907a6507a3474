use std::error::Error;
use std::path::{Path, PathBuf};

/// Where things are kept.
pub trait Store: Send + Sync {
    type Key: Ord + Clone;

    fn get(&self, key: &Self::Key) -> Option<String>;
    fn put<V>(&mut self, key: Self::Key, value: V) -> Result<(), Box<dyn Error>>
    where
        V: Into<String>;
}

#[derive(Default)]
pub struct Files {
    root: PathBuf,
    limit: Option<usize>,
}

impl Store for Files {
    type Key = String;

    fn get(&self, key: &String) -> Option<String> {
        std::fs::read_to_string(self.path(key)).ok()
    }

    fn put<V>(&mut self, key: String, value: V) -> Result<(), Box<dyn Error>>
    where
        V: Into<String>,
    {
        let value: String = value.into();
        if let Some(limit) = self.limit {
            if value.len() > limit {
                return Err(format!("{} is longer than {limit}", key).into());
            }
        }
        std::fs::write(self.path(&key), value)?;
        Ok(())
    }
}

impl Files {
    fn path(&self, key: &str) -> PathBuf {
        Path::new(&self.root).join(key.replace('/', "_"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_nothing() {
        let files = Files::default();
        assert_eq!(files.get(&"a".to_string()), None);
        assert!(matches!(files.limit, None), "no limit: {:?}", files.limit);
    }
}
