// The files that this process read a config from: the config first, then the tools and plugins that it names. Modules are
// loaded once in a process, so this is of the process too. Workers tell it to their primary.
export const filesRead: Set<string> = new Set()

/** The files and folders that plugins make of what they serve: `mcp-host dev` watches them. */
export const watched: Set<string> = new Set()
/** A plugin says that it reads this. */
export const noteRead = (path: string): void => void watched.add(path)
