//! Canvas of the plots: vectors or pixels, with an embedded font for machines without fonts.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, RasterizedChar, get_raster, get_raster_width};
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, IntoFont, RGBColor, TextStyle};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::error::Error;

/// plotters backend that measures text with the embedded font.
pub(super) struct PlotBackend<B> {
    canvas: B,
    /// True if text is rasterized; viewers of vector graphics have fonts.
    rasterizes_text: bool,
}

/// Drawing area in pixels.
pub(super) type PlotArea<B> = DrawingArea<PlotBackend<B>, Shift>;

/// Error of drawing or encoding.
pub(super) type PlotError = Box<dyn Error + Send + Sync>;

/// Heights of text.
pub(super) const TEXT_HEIGHT: u32 = 16;
pub(super) const TITLE_HEIGHT: u32 = 20;

/// Drawing area on an SVG document.
pub(super) fn svg_area(document: &mut String, size: (u32, u32)) -> PlotArea<SVGBackend<'_>> {
    PlotBackend { canvas: SVGBackend::with_string(document, size), rasterizes_text: false }.into_drawing_area()
}

/// Drawing area on RGB pixels.
pub(super) fn pixel_area(pixels: &mut [u8], size: (u32, u32)) -> PlotArea<BitMapBackend<'_>> {
    PlotBackend { canvas: BitMapBackend::with_buffer(pixels, size), rasterizes_text: true }.into_drawing_area()
}

/// Draws a line of text; `pos` is the anchor at the given point.
pub(super) fn text<B: DrawingBackend>(
    area: &PlotArea<B>,
    content: &str,
    at: (i32, i32),
    (height, color): (u32, RGBColor),
    pos: (HPos, VPos),
) -> Result<(), PlotError>
where
    B::ErrorType: 'static,
{
    let style = style(height, color).pos(Pos::new(pos.0, pos.1));
    Ok(area.draw_text(content, &style, at)?)
}

/// Style of text with a height and color.
pub(super) fn style(height: u32, color: RGBColor) -> TextStyle<'static> {
    (FontFamily::Monospace, height).into_font().color(&color)
}

/// Width of a text in pixels.
pub(super) fn width(content: &str, height: u32) -> u32 {
    let letter = get_raster_width(FontWeight::Regular, raster(height.into()));
    (content.chars().count() * letter) as u32
}

/// Truncates a text to `most` characters, ending in dots.
pub(in crate::report) fn truncate(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(2)).chain("..".chars()).collect()
}

fn raster(height: f64) -> RasterHeight {
    if height < 18.0 { RasterHeight::Size16 } else { RasterHeight::Size20 }
}

/// Bitmap of a character, with replacements for those that the font lacks.
fn letter(letter: char, height: RasterHeight) -> RasterizedChar {
    let alike = match letter {
        '–' | '−' => '-',
        '≥' => '>',
        '’' => '\'',
        other => other,
    };
    let drawn = |letter| get_raster(letter, FontWeight::Regular, height);
    drawn(alike).or_else(|| drawn('?')).expect("the font has a question mark")
}

impl<B: DrawingBackend> DrawingBackend for PlotBackend<B> {
    type ErrorType = B::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.canvas.get_size()
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        self.canvas.ensure_prepared()
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        self.canvas.present()
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        self.canvas.draw_pixel(at, color)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        self.canvas.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        self.canvas.draw_rect(from, to, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        self.canvas.draw_path(path, style)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        self.canvas.fill_polygon(corners, style)
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        // Names in records may hold control characters and noncharacters, which are invalid in SVG.
        let is_invalid = |letter: char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
        let text = text.replace(is_invalid, " ");
        if !self.rasterizes_text {
            return self.canvas.draw_text(&text, style, (x, y));
        }
        let (height, rgb) = (raster(style.size()), style.color().rgb);
        let (width, lines) = (get_raster_width(FontWeight::Regular, height) as i32, height.val() as i32);
        let whole = width * text.chars().count() as i32;
        let left = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Center => -whole / 2,
            HPos::Right => -whole,
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0,
            VPos::Center => -lines / 2,
            VPos::Bottom => -lines,
        };
        let (turn, size): (FontTransform, _) = (style.transform(), self.get_size());
        for (place, known) in text.chars().enumerate() {
            let drawn = letter(known, height);
            for (row, pixels) in drawn.rows().enumerate() {
                for (column, &alpha) in pixels.iter().enumerate().filter(|(_, alpha)| **alpha > 0) {
                    let (dx, dy) = turn.transform(left + place as i32 * width + column as i32, top + row as i32);
                    let at = (x + dx, y + dy);
                    if at.0 >= 0 && at.1 >= 0 && (at.0 as u32) < size.0 && (at.1 as u32) < size.1 {
                        self.canvas.draw_pixel(at, BackendColor { alpha: f64::from(alpha) / 255.0, rgb })?;
                    }
                }
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<B::ErrorType>> {
        Ok((width(text, style.size() as u32), raster(style.size()).val() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::style::BLACK;

    #[test]
    fn invalid_xml_characters_become_blanks() {
        let mut document = String::new();
        let area = svg_area(&mut document, (100, 20));
        text(&area, "a\u{1b}<b>\u{ffff}&", (0, 0), (TEXT_HEIGHT, BLACK), (HPos::Left, VPos::Top)).unwrap();
        area.present().unwrap();
        drop(area);
        assert!(document.contains("a &lt;b&gt; &amp;"), "{document}");
    }
}
