//! Markdown links to files of the project lead to files that are there.

use super::Finding;
use super::tree::Tree;

/// Checks the links of a Markdown text.
pub fn check(tree: &Tree, path: &str, text: &str, found: &mut Vec<Finding>) {
    if !path.ends_with(".md") {
        return;
    }
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            for target in targets(line).filter(|target| !leads(tree, path, target)) {
                found.push(Finding::new(path, index + 1, format!("the link leads nowhere: {target}")));
            }
        }
    }
}

/// What the links of a line lead to, `[text](target)` and `[name]: target`.
fn targets(line: &str) -> impl Iterator<Item = String> {
    let without_code: String = line.split('`').step_by(2).collect();
    let inline = without_code.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let named = without_code.starts_with('[').then(|| without_code.split_once("]: ")).flatten();
    let named = named.map(|(_, target)| target.trim());
    inline.chain(named).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Whether a target is there; addresses elsewhere are none of this rule's business.
fn leads(tree: &Tree, path: &str, target: &str) -> bool {
    let file = target.split('#').next().unwrap_or_default();
    if file.is_empty() || file.contains("://") {
        return true;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return false,
            ".." => {}
            name => parts.push(name),
        }
    }
    tree.has(&parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b/c.md", ""), ("LICENSE", "")]);
        let mut found = Vec::new();
        check(&tree, "docs/a.md", text, &mut found);
        found.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn links_lead_to_files() {
        for good in [
            "[c](b/c.md)",
            "[c](b/c.md#part), [b](b/)",
            "[l](../LICENSE)",
            "[h](#head)",
            "`[x](y.md)`",
            "[c]: b/c.md",
        ] {
            assert_eq!(found_in(good), [""; 0], "{good}");
        }
        assert_eq!(found_in("```\n[x](y.md)\n```\n"), [""; 0]);
        assert_eq!(found_in("[c](b/c.md) [x](y.md)"), ["the link leads nowhere: y.md"]);
        assert_eq!(found_in("[x](../../y.md)"), ["the link leads nowhere: ../../y.md"]);
        assert_eq!(found_in("[x]: y.md"), ["the link leads nowhere: y.md"]);
    }
}
