// Makes code of the docs import the sources of this repository instead of the package.
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
