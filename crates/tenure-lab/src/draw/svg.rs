//! The picture as one SVG image.
