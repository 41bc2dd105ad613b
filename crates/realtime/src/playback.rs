//! The audio of a response that the user is hearing.

use crate::dialect::AudioFacts;

/// An item of the model and how much of its audio has arrived.
#[derive(Debug, PartialEq)]
pub(crate) struct Playback {
    pub item_id: String,
    samples: u64,
    sample_rate: u32,
}

impl Playback {
    /// Counts a piece of audio. One of another item begins anew.
    pub fn add(playing: &mut Option<Self>, item_id: &str, audio: &AudioFacts<'_>) {
        let samples = u64::from(audio.samples_per_channel.unwrap_or_else(|| samples(audio)));
        match playing {
            Some(playing) if playing.item_id == item_id && playing.sample_rate == audio.sample_rate => {
                playing.samples = playing.samples.saturating_add(samples);
            }
            _ => *playing = Some(Self { item_id: item_id.into(), samples, sample_rate: audio.sample_rate }),
        }
    }

    /// The length of the audio, rounded down, in milliseconds.
    pub fn milliseconds(&self) -> u64 {
        self.samples.saturating_mul(1000) / u64::from(self.sample_rate.max(1))
    }
}

/// The samples per channel of 16 bit audio in base64.
fn samples(audio: &AudioFacts<'_>) -> u32 {
    let data = audio.data.trim_end_matches('=');
    let frame = 2 * usize::from(audio.num_channels.max(1));
    u32::try_from(data.len() / 4 * 3 / frame + (data.len() % 4) * 3 / 4 / frame).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audio(data: &str) -> AudioFacts<'_> {
        AudioFacts { data, sample_rate: 24_000, num_channels: 1, samples_per_channel: None }
    }

    #[test]
    fn the_length_is_that_of_all_pieces_of_one_item() {
        let (piece, mut playing) = ("A".repeat(6400), None);
        Playback::add(&mut playing, "a", &audio(&piece));
        assert_eq!(playing.as_ref().map(Playback::milliseconds), Some(100));
        Playback::add(&mut playing, "a", &audio(&piece));
        assert_eq!(playing.as_ref().map(Playback::milliseconds), Some(200));
        Playback::add(&mut playing, "b", &AudioFacts { samples_per_channel: Some(240), ..audio("") });
        assert_eq!(playing.as_ref().map(|playing| (playing.item_id.as_str(), playing.milliseconds())), Some(("b", 10)));
        Playback::add(
            &mut playing,
            "c",
            &AudioFacts { sample_rate: 0, samples_per_channel: Some(u32::MAX), ..audio("") },
        );
        assert!(playing.is_some_and(|playing| playing.milliseconds() > 0));
    }
}
