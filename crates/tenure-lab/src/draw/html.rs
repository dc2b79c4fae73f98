//! The picture as one self-contained page.
