// Builds an image from a Dockerfile without Docker: each stage is a folder in which its RUN steps run. The last stage
// contains only copied files, Node and its libraries, so that missing files are detected.

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import dockerignore from '@balena/dockerignore'
import type { Stage } from './dockerfile.ts'

export interface Image {
  /** The folder that is its root. */
  readonly root: string
  readonly stage: Stage
}

/** Whether a .dockerignore leaves out a path of the context, or a folder above it: as Docker reads it. */
export function readIgnored(text: string): (path: string) => boolean {
  const ignored = dockerignore.default({ ignorecase: false }).add(text)
  return path => ignored.ignores(path)
}

export interface Build {
  /** The project: what `docker build` is given. */
  readonly context: string
  /** Where the stages are to be, one folder each. */
  readonly folder: string
  /** Files put at the root of each stage: what stands for a registry. */
  readonly registry: readonly string[]
  /** For RUN. */
  readonly env: NodeJS.ProcessEnv
}

function copyInto(root: string, stage: Stage, step: Stage['steps'][number] & { what: 'copy' }, build: Build): void {
  const ignored = readIgnored(readFileSync(join(build.context, '.dockerignore'), 'utf8'))
  const from = step.from === undefined ? build.context : join(build.folder, step.from)
  const to = join(root, stage.workdir, step.to)
  for (const source of step.sources) {
    if (source !== '.') {
      cpSync(join(from, source), step.to.endsWith('/') ? join(to, basename(source)) : to, { recursive: true })
      continue
    }
    const isKept = (file: string) => file === from || !ignored(relative(from, file))
    cpSync(from, to, { recursive: true, filter: isKept })
  }
}

/** Executes every step; returns the last stage. */
export function buildImage(stages: readonly Stage[], build: Build): Image {
  let last: Image | undefined
  for (const stage of stages) {
    const root = join(build.folder, stage.name)
    mkdirSync(join(root, stage.workdir), { recursive: true })
    for (const file of build.registry) cpSync(file, join(root, basename(file)))
    for (const step of stage.steps) {
      if (step.what === 'copy') copyInto(root, stage, step, build)
      else execFileSync('sh', ['-c', step.command], { cwd: join(root, stage.workdir), env: build.env, stdio: 'pipe' })
    }
    last = { root, stage }
  }
  if (!last) throw new Error('a Dockerfile without FROM')
  return last
}

const DEVICES = ['null', 'zero', 'random', 'urandom']

/** What an image of Node has besides: places for Node, its libraries and a few devices, and the user 1000. */
export function addBase({ root }: Image): { readonly mounted: ReadonlyMap<string, string> } {
  const node = realpathSync(process.execPath)
  const libraries = execFileSync('ldd', [node], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
  const mounted = new Map([['/usr/local/bin/node', node]])
  for (const library of libraries) mounted.set(library, realpathSync(library))
  for (const device of DEVICES) mounted.set(`/dev/${device}`, `/dev/${device}`)
  for (const place of mounted.keys()) {
    mkdirSync(join(root, dirname(place)), { recursive: true })
    writeFileSync(join(root, place), '')
  }
  for (const folder of ['proc', 'tmp', 'etc', 'home/node']) mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, 'etc/passwd'), 'node:x:1000:1000:Linux User,,,:/home/node:/bin/sh\n')
  return { mounted }
}
