// A temporary folder with the files of one test. It is a package of its own, so that no config above is found.
import { mkdir, mkdtemp, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const made: string[] = []

/** Writes the files and returns the folder; `package.json` defaults to an ESM package. */
export async function makeFolder(files: Record<string, string | Uint8Array>): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'mcp-host-config-')))
  made.push(folder)
  for (const [name, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return folder
}

let replaced = 0

/** Writes a file that a process watches. The process sees either the old or the new text, never an empty or partial file. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const written = join(tmpdir(), `mcp-host-file-${process.pid}-${++replaced}`)
  await writeFile(written, text)
  await rename(written, path)
}

/** For `after`. */
export async function removeFolders(): Promise<void> {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true })
}
