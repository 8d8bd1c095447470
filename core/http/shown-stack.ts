// A stack as whoever wrote the code wants to read it: their own frames, by files as they know them. Frames of Node and of
// this package are left out, and counted. For the log; nothing of it is for clients.
import { existsSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface ShownStack {
  /** Where it happened: file, line and column of the first frame that its reader can mend. */
  readonly at?: string
  /** The frames, a line each. */
  readonly frames: readonly string[]
  /** How many frames were left out. */
  readonly left: number
}

type Owner = 'author' | 'package' | 'own' | 'node'

interface Frame {
  readonly owner: Owner
  readonly place: string
  readonly text: string
}

const FRAME = /^\s+at (?:(.+?) \()?(.+?):(\d+):(\d+)\)?$/
/** What in this package's folder is written by others, or as they would write it. */
const NOT_OWN = /^(?:examples|test|node_modules)[\\/]|^[^\\/]+$/

let root: string | undefined

/** The folder of this package, wherever it runs from: source or dist. */
function findRoot(directory = dirname(fileURLToPath(import.meta.url))): string {
  const parent = dirname(directory)
  return existsSync(join(directory, 'package.json')) || parent === directory ? directory : findRoot(parent)
}

function ownerOf(file: string): Owner {
  if (file.startsWith('node:')) return 'node'
  root ??= findRoot()
  const within = relative(root, file).replace(/^dist[\\/]/, '')
  if (!within.startsWith('..') && within !== file && !NOT_OWN.test(within)) return 'own'
  return file.includes(`${sep}node_modules${sep}`) ? 'package' : 'author'
}

/** A loader may have put a query behind a file's name. */
function fileIn(location: string): string {
  if (!location.startsWith('file:')) return location
  try {
    return fileURLToPath(location.replace(/[?#].*$/s, ''))
  } catch {
    return location
  }
}

function readFrame(line: string, directory: string): Frame | undefined {
  const [, name, location, row, column] = FRAME.exec(line) ?? []
  if (location === undefined) return undefined
  const file = fileIn(location.replace(/^async /, ''))
  const short = relative(directory, file)
  const place = `${short.startsWith('..') || file.startsWith('node:') ? file : short}:${row}:${column}`
  return { owner: ownerOf(file), place, text: `at ${name === undefined ? place : `${name} (${place})`}` }
}

/** The frames of a V8 stack; `directory`: files below it are shown from there. */
export function shownStack(stack: string, directory: string): ShownStack {
  const frames = stack.split('\n').flatMap(line => readFrame(line, directory) ?? [])
  const isOf =
    (...owners: Owner[]) =>
    ({ owner }: Frame) =>
      owners.includes(owner)
  const last = frames.findLastIndex(isOf('author'))
  // What called the author's code, such as Koa, is no news to them. A mistake of ours is only in our frames.
  const shown =
    last === -1 ? frames.filter(isOf('package', 'own')) : frames.slice(0, last + 1).filter(isOf('author', 'package'))
  const first = shown.find(isOf('author')) ?? shown[0]
  return {
    ...(first && { at: first.place }),
    frames: shown.map(({ text }) => text),
    left: frames.length - shown.length,
  }
}
