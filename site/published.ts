// Defines the published files of the website, their paths, and the anchors of headings. Also used by the docs tests.

/** Markdown files that are not pages of the website. */
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

/** Returns the anchor of a heading, with the same rules as GitHub. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

/** Paths on the website. `docs/plugins.md` is renamed, because many servers prefer the folder `docs/plugins`. */
export const REWRITES = {
  'site/index.md': 'index.md',
  'site/reference/:rest*': 'reference/:rest*',
  'README.md': 'overview.md',
  ':folder(.+)/README.md': ':folder/index.md',
  'docs/plugins.md': 'docs/write-plugins.md',
}

/** Applies `REWRITES` to a link of a page. */
export const rewriteLink = (link: string): string =>
  link.replace(/(?<=^|\/)README\.md(?=#|$)/, 'index.md').replace(/(?<=^|\/)plugins\.md(?=#|$)/, 'write-plugins.md')
