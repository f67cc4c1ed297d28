// Every relative link between the Markdown pages leads to a file, and every fragment to a heading of it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../scripts/docs/check.js";

const pages = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path)),
];

test.each(pages)("the links of %s", (page) => {
  expect(linksOf(page).filter((link) => !leadsSomewhere(page, link))).toEqual([]);
});

test("every page below docs/ is in the index, docs/README.md", () => {
  const indexed = linksOf(join("docs", "README.md")).map((link) => join("docs", link));
  const left = pages.filter((page) => dirname(page) !== "." && page !== join("docs", "README.md"));
  expect(left.filter((page) => !indexed.includes(page))).toEqual([]);
});

function linksOf(page: string): string[] {
  const text = withoutCode(readFileSync(join(root, page), "utf8"));
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link).filter((link) => !/^\w+:/.test(link));
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path, fragment] = link.split("#");
  const target = path === "" ? page : join(dirname(page), path);
  if (!existsSync(join(root, target))) return false;
  return fragment === undefined || anchorsOf(target).includes(fragment);
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): string[] {
  const text = withoutCode(readFileSync(join(root, page), "utf8"));
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^ *(```+|~~~+)[\s\S]*?^ *\1/gm, "");
}
