//! Prices of tokens.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::Tokens;

/// An amount of money in billionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    const PER_DOLLAR: f64 = 1e9;

    /// Negative amounts and those that are no number count as nothing.
    pub fn from_dollars(dollars: f64) -> Self {
        Self((dollars * Self::PER_DOLLAR).round() as u64)
    }

    pub fn dollars(self) -> f64 {
        self.0 as f64 / Self::PER_DOLLAR
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.dollars())
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |mut sum, amount| {
            sum += amount;
            sum
        })
    }
}

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    /// Default: as `input`.
    pub cached_input: Option<f64>,
    /// Default: as `input`.
    pub cache_write_input: Option<f64>,
    pub output: f64,
}

impl Price {
    pub fn of(&self, tokens: &Tokens) -> Money {
        let cached = tokens.cached_input.min(tokens.input);
        let written = tokens.cache_write_input.min(tokens.input - cached);
        let parts = [
            (tokens.input - cached - written, self.input),
            (cached, self.cached_input.unwrap_or(self.input)),
            (written, self.cache_write_input.unwrap_or(self.input)),
            (tokens.output, self.output),
        ];
        Money::from_dollars(parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>() / 1e6)
    }
}

/// The price of a model in a table with keys `model` and `provider/model`, which takes precedence.
pub fn find_price<'a, P>(prices: &'a BTreeMap<String, P>, provider: &str, model: &str) -> Option<&'a P> {
    if prices.is_empty() {
        return None;
    }
    prices.get(&format!("{provider}/{model}")).or_else(|| prices.get(model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price { input: 2.0, cached_input: Some(0.5), cache_write_input: Some(2.5), output: 8.0 };
        let tokens = Tokens {
            input: 1_000_000,
            cached_input: 400_000,
            cache_write_input: 100_000,
            output: 250_000,
            reasoning_output: 200_000,
        };
        assert_eq!(price.of(&tokens), Money::from_dollars(1.0 + 0.2 + 0.25 + 2.0));
        assert_eq!(price.of(&tokens).to_string(), "$3.4500");
        let plain = Price { input: 2.0, output: 8.0, ..Price::default() };
        assert_eq!(plain.of(&tokens), Money::from_dollars(4.0));
    }

    #[test]
    fn impossible_counts_cost_no_more_than_their_input() {
        let price = Price { input: 1.0, cached_input: Some(0.0), ..Price::default() };
        let tokens = Tokens { input: 10, cached_input: u64::MAX, cache_write_input: u64::MAX, ..Tokens::default() };
        assert_eq!(price.of(&tokens), Money(0));
    }

    #[test]
    fn the_price_of_a_providers_model_takes_precedence() {
        let prices = BTreeMap::from([("m".to_owned(), 1), ("p/m".to_owned(), 2)]);
        assert_eq!(find_price(&prices, "p", "m"), Some(&2));
        assert_eq!(find_price(&prices, "q", "m"), Some(&1));
        assert_eq!(find_price(&prices, "q", "n"), None);
    }
}
