//! Pictures of all kinds of panels.
#![allow(clippy::unwrap_used)]

use spmdc_plot::{Content, MAX_PANELS, Panel, png, svg};

fn panel(title: &str, content: Content) -> Panel {
    Panel { title: title.to_string(), content }
}

fn wave(count: usize) -> Vec<f64> {
    (0..count).map(|i| (i as f64 * 0.37).sin() * (i as f64 + 1.0).ln()).collect()
}

fn image(rows: usize, columns: usize) -> Content {
    let value = |i: usize| ((i / columns) as f64 * 0.11).sin() * ((i % columns) as f64 * 0.07).cos();
    Content::Image { rows, columns, values: (0..rows * columns).map(value).collect() }
}

fn points(count: usize) -> Content {
    let names = ["width".to_string(), "height".to_string()];
    Content::Points { x: wave(count), y: wave(count).into_iter().rev().collect(), names }
}

/// The pixels of a PNG, three bytes each, and its width.
fn pixels(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    (pixels, frame.width as usize)
}

/// The number of pixels of this colour.
fn count(bytes: &[u8], color: [u8; 3]) -> usize {
    pixels(bytes).0.chunks(3).filter(|pixel| *pixel == color).count()
}

#[test]
fn an_image_has_its_first_row_on_top_and_the_smallest_element_dark() {
    let content = Content::Image { rows: 2, columns: 2, values: vec![0.0, 0.0, 1.0, f64::NAN] };
    let bytes = png(&[panel("", content.clone())]).unwrap();
    let (pixels, width) = pixels(&bytes);
    let at = |x: usize, y: usize| pixels[3 * (y * width + x)..][..3].to_vec();
    let (across, down) = (width * 2 / 5, pixels.len() / width / 3);
    assert_eq!((at(across, down / 4), at(across, down * 3 / 5)), (vec![68, 1, 84], vec![254, 232, 37]));
    // A quarter of the image is a gap.
    let [dark, bright, white] = [[68, 1, 84], [254, 232, 37], [255; 3]].map(|color| count(&bytes, color));
    assert!(dark > bright * 19 / 10 && dark < bright * 21 / 10 && white > bright, "{dark} {bright} {white}");
    let text = svg(&[panel("", content)]).unwrap();
    assert!(text.contains("<path stroke=\"#440154\" d=\"M0 0h2\"/>"), "{text}");
    assert!(text.contains("<path stroke=\"#fee825\" d=\"M0 1h1\"/>"), "{text}");
}

#[test]
fn texts_are_drawn_without_fonts_of_the_system() {
    let dark = |title: &str| count(&png(&[panel(title, Content::Line(vec![1.0, 2.0]))]).unwrap(), [0, 0, 0]);
    assert!(dark("MMMMMMMM") > dark("........") + 100);
    let text = svg(&[panel("a<b&c", Content::Line(vec![1.0, 2.0]))]).unwrap();
    assert!(text.contains("\na&lt;b&amp;c\n") && text.contains("\n1.2\n"), "{text}");
}

#[test]
fn a_line_has_gaps() {
    let lines = |values: &[f64]| {
        let text = svg(&[panel("", Content::Line(values.to_vec()))]).unwrap();
        text.lines().filter(|line| line.starts_with("<polyline") && line.contains("#1F77B4")).count()
    };
    assert_eq!((lines(&[1.0, 2.0, 3.0]), lines(&[1.0, 2.0, f64::NAN, 3.0, 1.0])), (1, 2));
    assert_eq!(svg(&[panel("", Content::Line(vec![7.0]))]).unwrap().matches("<circle").count(), 1);
}

#[test]
fn pictures_of_large_arrays_are_small() {
    let mut state = 1_u64;
    let mut noise = |count: usize| -> Vec<f64> {
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64
        };
        (0..count).map(next).collect()
    };
    let names = [String::new(), String::new()];
    let contents = [
        Content::Line(noise(1_000_000)),
        Content::Image { rows: 1000, columns: 1000, values: noise(1_000_000) },
        Content::Points { x: noise(1_000_000), y: noise(1_000_000), names },
    ];
    for content in contents {
        let panels = [panel("x", content)];
        let (text, bytes) = (svg(&panels).unwrap(), png(&panels).unwrap());
        assert!(text.len() < 1_000_000 && bytes.len() < 1_000_000, "{} {}", text.len(), bytes.len());
        assert_eq!((text, bytes), (svg(&panels).unwrap(), png(&panels).unwrap()));
    }
}

#[test]
fn every_panel_is_drawn() {
    let all = [
        panel("loss", Content::Line(wave(30))),
        panel("u", image(40, 60)),
        panel("xy", points(300)),
        panel("long", Content::Line(wave(100_000))),
        panel("w", Content::Line(vec![f64::NAN; 3])),
    ];
    let text = svg(&all).unwrap();
    for title in ["loss", "u", "xy", "long", "w (no finite elements)", "width", "height"] {
        assert!(text.contains(&format!("\n{title}\n")), "{title}");
    }
    assert!(png(&all).is_ok());
    let many = vec![panel("x", Content::Line(wave(3))); MAX_PANELS + 1];
    assert!(svg(&many[1..]).is_ok() && svg(&many).is_err() && svg(&[]).is_err());
}

#[test]
fn extreme_shapes_and_values_are_drawn() {
    let extremes = [f64::MIN, f64::MAX, 5e-324, -0.0, f64::INFINITY, f64::NAN];
    for (rows, columns) in [(1, 6), (6, 1), (2, 3)] {
        let panels = [panel("", Content::Image { rows, columns, values: extremes.to_vec() })];
        assert!(svg(&panels).is_ok() && png(&panels).is_ok());
    }
    for values in [vec![3.0], vec![0.0; 5], extremes.to_vec(), vec![5e-324, 0.0], vec![1e16, 1e16 + 2.0]] {
        let names = [String::new(), String::new()];
        let points = Content::Points { x: values.clone(), y: values.clone(), names };
        for content in [Content::Line(values), points] {
            let panels = [panel("", content)];
            assert!(svg(&panels).is_ok() && png(&panels).is_ok());
        }
    }
    for (rows, columns) in [(1, 5000), (5000, 1)] {
        let panels = [panel("", image(rows, columns))];
        assert!(svg(&panels).is_ok() && png(&panels).is_ok());
    }
}
