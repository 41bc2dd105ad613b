//! Images on disk as data URLs for models, scaled down to the size that models use. They are read and decoded on
//! blocking threads, one at a time per process, and decoded only if the size in their header is within the limits.

mod queue;

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use loomd_protocol::ContentItem;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// The text in place of an image in the input of a model without image input.
pub const OMITTED: &str = "image content omitted because you do not support image input";

/// The output of `view_image` for a model without image input.
pub const VIEW_NOT_ALLOWED: &str = "view_image is not allowed because you do not support image inputs";

/// Larger images are scaled down to this: models do so anyway.
const MAX_WIDTH: u32 = 2048;
const MAX_HEIGHT: u32 = 768;

/// The largest image file that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The most pixels of an image, checked before it is decoded: a small file can decompress to a huge image.
const MAX_PIXELS: u64 = 64_000_000;

/// The most pixels of a side: scaling allocates memory for whole rows.
const MAX_SIDE: u32 = 65_535;

/// The most memory that a decoder may allocate: four bytes per pixel of [`MAX_PIXELS`].
const MAX_DECODED_BYTES: u64 = 256 << 20;

const JPEG_QUALITY: u8 = 85;

/// The memory of the cache of data URLs. A scaled image has about a megabyte.
const MAX_CACHED_BYTES: usize = 32 << 20;

/// Converts images to data URLs and caches the last ones.
#[derive(Debug, Default)]
pub struct Images {
    cache: Mutex<ImageCache>,
}

/// Why an image cannot be attached to a message. The text takes the image's place in the message.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("Codex could not read the local image at `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("Image located at `{}` is invalid: {reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("Codex cannot attach image at `{}`: unsupported image `{media_type}`.", path.display())]
    Unsupported { path: PathBuf, media_type: &'static str },
}

/// Why `view_image` fails. The text is the output of the call.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("unable to locate image at `{}`: {source}", path.display())]
    Locate { path: PathBuf, source: io::Error },
    #[error("image path `{}` is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("unable to process image at `{}`: {reason}", path.display())]
    Process { path: PathBuf, reason: String },
}

impl Images {
    /// A `localImage` input as content of a message: the image with its label, or the text of an [`AttachError`].
    /// `number` counts the images of a request from 1.
    pub async fn local_image(self: &Arc<Self>, path: PathBuf, number: usize) -> Vec<ContentItem> {
        let images = Arc::clone(self);
        let parts = queue::one_at_a_time(move || images.attached(&path, number)).await;
        parts.unwrap_or_else(|_| vec![ContentItem::InputText { text: "an image could not be read".into() }])
    }

    /// The data URL of an image for a `view_image` call.
    pub async fn view(self: &Arc<Self>, path: PathBuf) -> Result<Arc<str>, ViewError> {
        let (images, shown) = (Arc::clone(self), path.clone());
        let failed = |_| Err(ViewError::Process { path: shown, reason: "the decoder failed".into() });
        queue::one_at_a_time(move || images.look_at(&path)).await.unwrap_or_else(failed)
    }

    fn attached(&self, path: &Path, number: usize) -> Vec<ContentItem> {
        match self.attach(path) {
            Ok(url) => labelled(&format!("<image name=[Image #{number}]>"), &url).into(),
            Err(error) => vec![ContentItem::InputText { text: error.to_string() }],
        }
    }

    /// The data URL of an image that the user attached.
    fn attach(&self, path: &Path) -> Result<Arc<str>, AttachError> {
        let bytes = read(path).map_err(|source| AttachError::Read { path: path.into(), source })?;
        self.data_url(&bytes).map_err(|error| match (error, other_type(path)) {
            (BadImage::NoFormat, Some(media_type)) => AttachError::Unsupported { path: path.into(), media_type },
            (error, _) => AttachError::Invalid { path: path.into(), reason: error.to_string() },
        })
    }

    fn look_at(&self, path: &Path) -> Result<Arc<str>, ViewError> {
        let metadata = fs::metadata(path).map_err(|source| ViewError::Locate { path: path.into(), source })?;
        if !metadata.is_file() {
            return Err(ViewError::NotAFile { path: path.into() });
        }
        let process = |reason| ViewError::Process { path: path.into(), reason };
        let bytes = read(path).map_err(|error| process(error.to_string()))?;
        self.data_url(&bytes).map_err(|error| match (error, other_type(path)) {
            (BadImage::NoFormat, Some(media_type)) => process(format!("unsupported image `{media_type}`")),
            (error, _) => process(error.to_string()),
        })
    }

    fn data_url(&self, bytes: &[u8]) -> Result<Arc<str>, BadImage> {
        let hash = Sha256::digest(bytes).into();
        let cache = || self.cache.lock();
        if let Some(url) = cache().get(hash) {
            return Ok(url);
        }
        let url: Arc<str> = convert(bytes)?.into();
        cache().insert(hash, Arc::clone(&url));
        Ok(url)
    }
}

/// An `image` input as content of a message. Its URL is passed on unchanged.
pub fn remote_image(url: &str) -> [ContentItem; 3] {
    labelled("<image>", url)
}

fn labelled(label: &str, url: &str) -> [ContentItem; 3] {
    let text = |text: &str| ContentItem::InputText { text: text.into() };
    [text(label), ContentItem::InputImage { image_url: url.into() }, text("</image>")]
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    loomd_regular::read(path, MAX_FILE_BYTES)
}

#[derive(Debug, thiserror::Error)]
enum BadImage {
    #[error("it is not a PNG, JPEG, GIF or WebP image")]
    NoFormat,
    #[error(
        "it has {width} x {height} pixels; at most {} megapixels and {MAX_SIDE} pixels per side can be decoded",
        MAX_PIXELS / 1_000_000
    )]
    TooLarge { width: u32, height: u32 },
    #[error("{0}")]
    Codec(#[from] image::ImageError),
}

/// The image as a data URL: unchanged if its format and size are accepted, converted otherwise.
fn convert(bytes: &[u8]) -> Result<String, BadImage> {
    let format = image::guess_format(bytes).map_err(|_| BadImage::NoFormat)?;
    let sent_as = match format {
        ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP => format,
        ImageFormat::Gif => ImageFormat::Png,
        _ => return Err(BadImage::NoFormat),
    };
    // Decoded in any case: the provider would reject every later call of the thread for a corrupt image.
    let (mut image, orientation) = decode(bytes, format)?;
    let fits = image.width() <= MAX_WIDTH && image.height() <= MAX_HEIGHT;
    if fits && sent_as == format {
        return Ok(url(format, bytes));
    }
    // Encoding drops the EXIF orientation, so it is applied to the pixels.
    image.apply_orientation(orientation);
    if image.width() > MAX_WIDTH || image.height() > MAX_HEIGHT {
        image = image.resize(MAX_WIDTH, MAX_HEIGHT, FilterType::Triangle);
    }
    Ok(url(sent_as, &encode(&image, sent_as)?))
}

fn decode(bytes: &[u8], format: ImageFormat) -> Result<(DynamicImage, Orientation), BadImage> {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    if width.max(height) > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(BadImage::TooLarge { width, height });
    }
    limits.reserve(decoder.total_bytes())?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder)?, orientation))
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Result<Vec<u8>, BadImage> {
    let mut bytes = Vec::new();
    match format {
        ImageFormat::Jpeg => {
            image.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY))?;
        }
        ImageFormat::WebP => image.to_rgba8().write_with_encoder(WebPEncoder::new_lossless(&mut bytes))?,
        _ => image.write_to(&mut Cursor::new(&mut bytes), format)?,
    }
    Ok(bytes)
}

fn url(format: ImageFormat, bytes: &[u8]) -> String {
    let mut url = format!("data:{};base64,", format.to_mime_type());
    STANDARD.encode_string(bytes, &mut url);
    url
}

/// The media type of a file extension; `None` for formats that are accepted.
fn other_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    Some(match extension.as_deref().unwrap_or_default() {
        "png" | "jpg" | "jpeg" | "gif" | "webp" => return None,
        "avif" => "image/avif",
        "bmp" => "image/bmp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "ico" => "image/x-icon",
        "svg" => "image/svg+xml",
        "tif" | "tiff" => "image/tiff",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "md" => "text/markdown",
        "txt" => "text/plain",
        "mp4" => "video/mp4",
        _ => "unknown",
    })
}

/// Data URLs by the SHA-256 of their files, the least recently used first.
#[derive(Debug, Default)]
struct ImageCache {
    entries: VecDeque<([u8; 32], Arc<str>)>,
    bytes: usize,
}

impl ImageCache {
    fn get(&mut self, hash: [u8; 32]) -> Option<Arc<str>> {
        let at = self.entries.iter().position(|(known, _)| *known == hash)?;
        let entry = self.entries.remove(at)?;
        let url = Arc::clone(&entry.1);
        self.entries.push_back(entry);
        Some(url)
    }

    fn insert(&mut self, hash: [u8; 32], url: Arc<str>) {
        if url.len() > MAX_CACHED_BYTES || self.entries.iter().any(|(known, _)| *known == hash) {
            return;
        }
        self.bytes += url.len();
        self.entries.push_back((hash, url));
        while self.bytes > MAX_CACHED_BYTES
            && let Some((_, oldest)) = self.entries.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::new_rgb8(width, height).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// A JPEG whose EXIF orientation is a rotation by 90 degrees.
    fn sideways(width: u32, height: u32) -> Vec<u8> {
        let exif = b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let plain = picture(width, height, ImageFormat::Jpeg);
        [&plain[..2], exif, &plain[2..]].concat()
    }

    /// The media type, size and bytes in the data URL of a file.
    fn sent(bytes: &[u8]) -> (String, (u32, u32), Vec<u8>) {
        let url = convert(bytes).unwrap();
        let (media_type, data) = url.strip_prefix("data:").unwrap().split_once(";base64,").unwrap();
        let data = STANDARD.decode(data).unwrap();
        let image = image::load_from_memory(&data).unwrap();
        (media_type.into(), (image.width(), image.height()), data)
    }

    #[test]
    fn an_image_within_the_size_is_sent_unchanged() {
        for (format, media_type) in
            [(ImageFormat::Png, "image/png"), (ImageFormat::Jpeg, "image/jpeg"), (ImageFormat::WebP, "image/webp")]
        {
            let bytes = picture(3, 2, format);
            assert_eq!(sent(&bytes), (media_type.into(), (3, 2), bytes));
        }
    }

    #[test]
    fn a_larger_image_is_scaled_and_keeps_its_format_and_aspect_ratio() {
        for (format, media_type, from, to) in [
            (ImageFormat::Png, "image/png", (2560, 8), (2048, 6)),
            (ImageFormat::Png, "image/png", (3, 1536), (2, 768)),
            (ImageFormat::Jpeg, "image/jpeg", (8, 960), (6, 768)),
            (ImageFormat::WebP, "image/webp", (4096, 2), (2048, 1)),
            (ImageFormat::Gif, "image/png", (2560, 8), (2048, 6)),
        ] {
            let (found, size, _) = sent(&picture(from.0, from.1, format));
            assert_eq!((found.as_str(), size), (media_type, to), "{format:?}");
        }
    }

    #[test]
    fn a_gif_becomes_a_png() {
        let (media_type, size, _) = sent(&picture(3, 2, ImageFormat::Gif));
        assert_eq!((media_type.as_str(), size), ("image/png", (3, 2)));
    }

    #[test]
    fn exif_orientation_is_applied_before_scaling() {
        let (_, size, _) = sent(&sideways(3072, 16));
        assert_eq!(size, (4, 768));
        let small = sideways(3, 2);
        assert_eq!(sent(&small).2, small);
    }

    /// A PNG of this size that ends after its header.
    fn png_header(width: u32, height: u32) -> Vec<u8> {
        let mut chunk = b"IHDR".to_vec();
        chunk.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
        chunk.extend([8, 2, 0, 0, 0]);
        let mut crc = !0_u32;
        for byte in &chunk {
            crc ^= u32::from(*byte);
            (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
        }
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0d", &chunk[..], &(!crc).to_be_bytes(), b"\0\0\0\0IDAT\x35\xaf\x06\x1e"].concat()
    }

    #[test]
    fn the_size_in_the_header_is_checked_before_anything_is_decoded() {
        for (width, height) in [(50_000, 50_000), (8_001, 8_000), (65_536, 1), (1, u32::MAX >> 1)] {
            let expected = format!(
                "it has {width} x {height} pixels; at most 64 megapixels and 65535 pixels per side can be decoded"
            );
            assert_eq!(convert(&png_header(width, height)).unwrap_err().to_string(), expected);
        }
        // Within the limits it is decoded, which fails.
        let broken = convert(&png_header(8_000, 8_000)).unwrap_err().to_string();
        assert!(!broken.contains("megapixels"), "{broken}");
    }

    #[test]
    fn a_named_pipe_is_refused_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("a.png");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert_eq!(read(&pipe).unwrap_err().to_string(), "is not a regular file");
    }

    #[test]
    fn an_image_that_cannot_be_attached_is_replaced_by_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let broken = picture(30, 20, ImageFormat::Png);
        for (name, content, note, view) in [
            ("a.bmp", &b"BM"[..], "cannot", "unsupported image `image/bmp`"),
            ("a.txt", b"hello", "cannot", "unsupported image `text/plain`"),
            ("noext", b"hello", "cannot", "unsupported image `unknown`"),
            ("a.png", b"hello", "invalid", "it is not a PNG, JPEG, GIF or WebP image"),
            ("cut.png", &broken[..40], "invalid", "unexpected end of file"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            let at = path.display();
            let images = Images::default();
            assert_eq!(
                images.look_at(&path).unwrap_err().to_string(),
                format!("unable to process image at `{at}`: {view}")
            );
            let expected = match note {
                "cannot" => format!("Codex cannot attach image at `{at}`: {view}."),
                _ => format!("Image located at `{at}` is invalid: {view}"),
            };
            assert_eq!(images.attached(&path, 1), [ContentItem::InputText { text: expected }]);
        }
    }

    #[test]
    fn view_image_fails_with_the_reason() {
        let images = Images::default();
        let missing = Path::new("/missing.png");
        assert_eq!(
            images.attach(missing).unwrap_err().to_string(),
            "Codex could not read the local image at `/missing.png`: No such file or directory (os error 2)"
        );
        assert_eq!(
            images.look_at(missing).unwrap_err().to_string(),
            "unable to locate image at `/missing.png`: No such file or directory (os error 2)"
        );
        assert_eq!(
            images.attach(Path::new("/")).unwrap_err().to_string(),
            "Codex could not read the local image at `/`: Is a directory (os error 21)"
        );
        assert_eq!(images.look_at(Path::new("/")).unwrap_err().to_string(), "image path `/` is not a file");
    }

    #[test]
    fn images_are_sent_between_labels() {
        let text = |text: &str| ContentItem::InputText { text: text.into() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        fs::write(&path, picture(1, 1, ImageFormat::Png)).unwrap();
        let images = Images::default();
        let image_url = images.attach(&path).unwrap().to_string();
        assert_eq!(
            images.attached(&path, 2),
            [text("<image name=[Image #2]>"), ContentItem::InputImage { image_url }, text("</image>")]
        );
        let image_url = "https://example.test/a.png".to_owned();
        assert_eq!(
            remote_image(&image_url),
            [text("<image>"), ContentItem::InputImage { image_url }, text("</image>")]
        );
    }

    #[test]
    fn the_cache_is_bounded_and_drops_the_least_recently_used() {
        let mut cache = ImageCache::default();
        let half: Arc<str> = "x".repeat(MAX_CACHED_BYTES / 2).into();
        let known = |cache: &mut ImageCache| [1, 2, 3].map(|number| cache.get([number; 32]).is_some());
        cache.insert([1; 32], Arc::clone(&half));
        cache.insert([2; 32], Arc::clone(&half));
        assert_eq!(known(&mut cache), [true, true, false]);
        cache.get([1; 32]);
        cache.insert([3; 32], half);
        assert_eq!(known(&mut cache), [true, false, true]);
        cache.insert([2; 32], "x".repeat(MAX_CACHED_BYTES + 1).into());
        assert_eq!(known(&mut cache), [true, false, true]);
    }

    #[test]
    fn the_same_image_is_converted_once() {
        let images = Images::default();
        let bytes = picture(3, 2, ImageFormat::Gif);
        let [first, second] = [(); 2].map(|()| images.data_url(&bytes).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
    }
}
