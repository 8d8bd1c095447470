// The files in templates/, which the package ships: real code under names that are replaced by those of the project.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownPackage } from '../version.ts'

/** What stands in the templates, and what takes its place, in this order. */
export type Replacements = ReadonlyArray<readonly [written: string, by: string]>

/** The text of a template; `file` is its path in templates/. */
export function readTemplate(file: string, replacements: Replacements): string {
  const text = readFileSync(join(ownPackage.folder, 'templates', file), 'utf8')
  return replacements.reduce((made, [written, by]) => made.replaceAll(written, () => by), text)
}

/** A JSON file as people write it. */
export const jsonText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`
