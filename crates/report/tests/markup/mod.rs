//! Checks that a page is well formed: every element closed in order, every attribute quoted, no stray `<` or `&`.

/// Elements without content, HTML standard §13.1.2.
const VOID: [&str; 3] = ["meta", "br", "link"];
/// Elements whose content is not markup.
const RAW: [&str; 2] = ["script", "style"];

/// The first error, with the text at its position.
pub fn check(page: &str) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").ok_or("no doctype")?;
    while let Some(start) = rest.find('<') {
        text(&rest[..start])?;
        let end = rest[start..].find('>').ok_or("a tag does not end")? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop().ok_or(format!("</{name}> closes nothing"))?;
            if last != name {
                return Err(format!("</{name}> closes <{last}>"));
            }
            continue;
        }
        let name = tag.split_whitespace().next().ok_or("an empty tag")?;
        attributes(tag[name.len()..].trim_start()).map_err(|fault| format!("<{tag}>: {fault}"))?;
        if RAW.contains(&name) {
            let close = format!("</{name}>");
            let end = rest.find(&close).ok_or(format!("<{name}> does not end"))?;
            rest = &rest[end + close.len()..];
        } else if !VOID.contains(&name) {
            open.push(name.to_string());
        }
    }
    text(rest)?;
    if open.is_empty() { Ok(()) } else { Err(format!("not closed: {open:?}")) }
}

fn attributes(mut rest: &str) -> Result<(), String> {
    let mut names: Vec<&str> = Vec::new();
    while !rest.is_empty() {
        let name_end = rest.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(rest.len());
        let name = &rest[..name_end];
        if name.is_empty() || name.contains(['"', '\'']) || names.contains(&name) {
            return Err(format!("attribute `{name}`"));
        }
        names.push(name);
        rest = &rest[name_end..];
        if let Some(value) = rest.strip_prefix("=\"") {
            let end = value.find('"').ok_or("a value does not end")?;
            text(&value[..end])?;
            rest = &value[end + 1..];
        } else if rest.starts_with('=') {
            return Err(format!("`{name}` is not quoted"));
        }
        rest = rest.trim_start();
    }
    Ok(())
}

/// Checks that every `&` begins a character reference.
fn text(text: &str) -> Result<(), String> {
    for after in text.split('&').skip(1) {
        let name = after.split(';').next().unwrap_or("");
        if !["amp", "lt", "gt", "quot", "#39"].contains(&name) {
            return Err(format!("stray & before `{}`", after.chars().take(20).collect::<String>()));
        }
    }
    Ok(())
}

#[test]
fn faults_are_found() {
    for fault in [
        "<p>",
        "<!DOCTYPE html><p>",
        "<!DOCTYPE html><p></b>",
        "<!DOCTYPE html></p>",
        "<!DOCTYPE html><p a=b></p>",
        "<!DOCTYPE html><p a=\"1\" a=\"2\"></p>",
        "<!DOCTYPE html>a & b",
        "<!DOCTYPE html><script>",
    ] {
        assert!(check(fault).is_err(), "{fault}");
    }
    assert_eq!(check("<!DOCTYPE html><meta a=\"b\"><p hidden>a &amp; b<b></b></p>"), Ok(()));
}
