// The files that this process read a config from: the config first, then the tools and plugins that it names. Modules are
// loaded once in a process, so this is of the process too. Workers tell it to their primary.
export const filesRead: Set<string> = new Set()

/** Says that what is served depends on this file, an absolute path: `mcp-host dev` reloads when it changes. */
export const noteFileRead = (file: string): void => void filesRead.add(file)
