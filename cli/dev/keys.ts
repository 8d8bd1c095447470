// Keys of a terminal: one press is one command. For `mcp-host dev`.

const CTRL_C = '\x03'
const CTRL_D = '\x04'

/** Calls `pressed` with each key; Ctrl-C and Ctrl-D are `q`. Returns what gives the terminal back; nothing is read where there is none. */
export function readKeys(pressed: (key: string) => void): () => void {
  const { stdin } = process
  if (stdin.isTTY !== true) return () => undefined
  const read = (text: string) => {
    for (const key of text) pressed(key === CTRL_C || key === CTRL_D ? 'q' : key.toLowerCase())
  }
  stdin.setRawMode(true)
  stdin.setEncoding('utf8').on('data', read)
  return () => {
    stdin.off('data', read)
    stdin.setRawMode(false)
    stdin.pause()
  }
}
