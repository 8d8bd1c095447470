// Defines the files that the website publishes, their paths, and the anchors of headings. The docs tests use the same rules.

/** Markdown files that are no pages of the website. */
export const UNPUBLISHED = [
  '**/node_modules/**',
  'test/**',
  'bench/**',
  'coverage/**',
  'create/**',
  'templates/**',
  'cli/**',
  'dist/**',
  'examples/skills/skills/**',
]

/** Files that pages link to. They are published unchanged. */
export const COPIED = ['mcp.config.example.ts', 'docs/metrics/*', 'examples/**/*.{ts,conf,yaml,yml}']

/** The anchor of a heading, as GitHub makes it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

/** Paths of pages on the website. `docs/plugins.md` has another name, because many servers prefer the folder `docs/plugins`. */
export const REWRITES = {
  'site/index.md': 'index.md',
  'site/reference/:rest*': 'reference/:rest*',
  'README.md': 'overview.md',
  ':folder(.+)/README.md': ':folder/index.md',
  'docs/plugins.md': 'docs/write-plugins.md',
}

/** A link of a page, with the file names that `REWRITES` changes. */
export const rewriteLink = (link: string): string =>
  link.replace(/(?<=^|\/)README\.md(?=#|$)/, 'index.md').replace(/(?<=^|\/)plugins\.md(?=#|$)/, 'write-plugins.md')
