// Reports type errors of a project in the background, with the project's own compiler.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { printable } from '../../client/text.ts'

const MAX_ERRORS = 8
const ERROR = /^(.+)\((\d+),(\d+)\): error (TS\d+): (.*)$/

export function formatTypeErrors(output: string): string[] {
  const errors = output.split(/\r?\n/).flatMap(line => {
    const [, file, row, column, code, text] = ERROR.exec(line) ?? []
    return file === undefined ? [] : [`types: ${printable(`${file}:${row}:${column}  ${text} (${code})`, 300)}`]
  })
  // An error without a file, such as a tsconfig.json that cannot be read.
  const general = errors.length > 0 ? null : /^error TS\d+: .*$/m.exec(output)
  if (general) return [`types: ${printable(general[0], 300)}`]
  const more = errors.length - MAX_ERRORS
  return more > 0 ? [...errors.slice(0, MAX_ERRORS), `types: and ${more} more; see npx tsc --noEmit`] : errors
}

function findAbove(folder: string, name: string): string | undefined {
  if (existsSync(join(folder, name))) return join(folder, name)
  return dirname(folder) === folder ? undefined : findAbove(dirname(folder), name)
}

function findCompiler(folder: string): string | undefined {
  try {
    const manifest = createRequire(join(folder, 'package.json')).resolve('typescript/package.json')
    const { bin } = createRequire(manifest)(manifest) as { bin?: { tsc?: string } }
    return bin?.tsc === undefined ? undefined : join(dirname(manifest), bin.tsc)
  } catch {
    return undefined
  }
}

export function createTypeCheck(folder: string, files: () => readonly string[], say: (line: string) => void) {
  let child: ChildProcess | undefined
  let isMissingReported = false
  let hadErrors = false

  function check(compiler: string, project: string) {
    const running = spawn(process.execPath, [compiler, '--noEmit', '--pretty', 'false', '-p', project], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    child = running
    let output = ''
    running.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < 1_000_000) output += text
    })
    running.once('error', () => undefined)
    running.once('close', () => {
      if (child !== running) return
      child = undefined
      const errors = formatTypeErrors(output)
      for (const line of errors) say(line)
      if (errors.length === 0 && hadErrors) say('types: fine again')
      hadErrors = errors.length > 0
    })
  }

  function end(): void {
    child?.kill()
    child = undefined
  }

  return {
    run(): void {
      end()
      const project = findAbove(folder, 'tsconfig.json')
      if (!project || !files().some(file => /\.[cm]?tsx?$/.test(file))) return
      const compiler = findCompiler(folder)
      if (compiler) check(compiler, project)
      else if (!isMissingReported) say('types are not checked: npm install --save-dev typescript')
      isMissingReported ||= !compiler
    },
    end,
  }
}
