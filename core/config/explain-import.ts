// Why a config written in code could not be imported: the file and line, in one line of text, and what to do.
// For load-config.ts. Node and esbuild say this in a dozen different ways.
import { pathToFileURL } from 'node:url'
import { errorText } from '../http/errors.ts'
import { shortName } from './problems.ts'

interface Explained {
  /** The file at fault: the config, or one that it imports. */
  readonly at: string
  readonly line: number | undefined
  readonly text: string
}

const ESBUILD = /^(.+):(\d+):\d+: (?:ERROR|error): (.*)$/m

/** Explains what `import()` of `file` rejected with. */
export function explainImport(file: string, error: unknown): Explained {
  const [, at, line, fault] = ESBUILD.exec(errorText(error)) ?? []
  if (at !== undefined && fault !== undefined) {
    return { at, line: Number(line), text: `${fault}${adviceFor(error, at)}` }
  }
  const [text = ''] = errorText(error).split('\n')
  return { at: file, line: lineInStack(file, error), text: `cannot be loaded: ${text}${adviceFor(error, file)}` }
}

/** The first line of the file that the stack names. */
function lineInStack(file: string, error: unknown): number | undefined {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  for (const name of [file, pathToFileURL(file).href]) {
    const start = stack.indexOf(`${name}:`)
    const line = Number.parseInt(stack.slice(start + name.length + 1), 10)
    if (start !== -1 && !Number.isNaN(line)) return line
  }
  return undefined
}

function adviceFor(error: unknown, file: string): string {
  const text = errorText(error)
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (text.includes('Top-level await')) {
    return '; put "type": "module" into the package.json beside it, or name the file .mts'
  }
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION') return '; a config that imports TypeScript must be mcp.config.ts itself'
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') return '; check the import, or run npm install'
  const isUnplaced = error instanceof SyntaxError && lineInStack(file, error) === undefined
  return isUnplaced ? `; "node --check ${shortName(file)}" shows where` : ''
}
