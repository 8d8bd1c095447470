// Limits of skills (SEP-2640, "Limits"), and of reading them.

/** Files of a skill, including those of skills inside. */
export const MAX_FILES = 512
/** Maximum bytes of these files. */
export const MAX_BYTES = 16 * 1024 * 1024
/** Maximum bytes of the front matter of a SKILL.md. */
export const MAX_FRONT_MATTER = 64 * 1024
/** Maximum YAML tokens of the front matter, because parsing time grows with them. */
export const MAX_TOKENS = 5_000
export const MAX_FRONT_MATTER_IN_ALL = 4 * 1024 * 1024

export const MAX_ENTRIES = 50_000
export const MAX_DEPTH = 32

/** Maximum bytes of a file in memory; a larger file is read for each request. */
export const KEPT_FILE = 1024 * 1024
/** Maximum bytes of all files in memory. */
export const KEPT_IN_ALL = 64 * 1024 * 1024

/** Maximum skills, and JSON bytes, on a page of `skills/list`; at least one skill. */
export const PAGE_SKILLS = 100
export const PAGE_BYTES = 1024 * 1024
export const PAGE_ENTRIES = 500

export const MAX_TOLD = 20
