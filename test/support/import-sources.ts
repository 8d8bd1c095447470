// Code of the docs, as it runs from here: what it imports from the package comes from the sources of this repository.
import { readFileSync } from 'node:fs'

const ROOT = new URL('../../', import.meta.url)
const { compilerOptions } = JSON.parse(readFileSync(new URL('tsconfig.json', ROOT), 'utf8')) as {
  compilerOptions: { paths: Record<string, [file: string]> }
}

export const importSources = (code: string): string =>
  Object.entries(compilerOptions.paths).reduce(
    (text, [entry, [file]]) => text.replaceAll(`'${entry}'`, JSON.stringify(new URL(file, ROOT).href)),
    code,
  )
