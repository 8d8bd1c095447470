// Defines which files the website publishes and the anchors of its headings. The docs tests use the same rules.

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
