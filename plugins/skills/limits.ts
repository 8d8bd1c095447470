// What a skill may be at most, as every client must take it (SEP-2640, "Limits"), and what this host spends on reading them.

/** Files of one skill, its SKILL.md and those of skills in it among them. */
export const MAX_FILES = 512
/** Bytes of the files of one skill. */
export const MAX_BYTES = 16 * 1024 * 1024
/** Bytes of the front matter of a SKILL.md. */
export const MAX_FRONT_MATTER = 64 * 1024
/** Tokens of YAML in it: what takes long is many of them, and every 64 KiB of text are one. */
export const MAX_TOKENS = 5_000
/** Bytes of the front matter of all that are below the folder. */
export const MAX_FRONT_MATTER_IN_ALL = 4 * 1024 * 1024

/** Files and folders below the folder of skills: past it, it is rather the wrong folder. */
export const MAX_ENTRIES = 50_000
/** Folders in one another. */
export const MAX_DEPTH = 32

/** Bytes of a file that stays in memory; a larger one is read, and held against its digest, for each answer. */
export const KEPT_FILE = 1024 * 1024
/** Bytes of all that stay. */
export const KEPT_IN_ALL = 64 * 1024 * 1024

/** Skills, and bytes of their JSON, on a page of `skills/list`; at least one skill. */
export const PAGE_SKILLS = 100
export const PAGE_BYTES = 1024 * 1024
/** Entries on a page of `resources/directory/read`. */
export const PAGE_ENTRIES = 500

/** Mistakes that are told of one folder. */
export const MAX_TOLD = 20
