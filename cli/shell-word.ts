// One word of a command that a person may paste into a shell. Scopes and URLs in it may be a server's own words.

const PLAIN = /^[\w@%+=:,./-]+$/

/** As it is where no shell sees more in it, else in single quotes. */
export const shellWord = (text: string): string => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
