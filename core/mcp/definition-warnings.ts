// What a definition may have that some clients or callers cannot use: warned of at startup, and when it is added at run time.
import type { CatalogItem } from './catalog-item.ts'
import { didYouMean } from './nearest.ts'
import { unknownRequired } from './schema/unknown-required.ts'

interface DefinitionWarning {
  readonly why: string
  /** Keys of the definition. */
  readonly at: readonly string[]
}

/** 2025-11-25 server/tools "Tool Names": what others use, some clients refuse with all tools of the server. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/

export function warningsOf(item: CatalogItem): DefinitionWarning[] {
  if (item.kind !== 'tools') return []
  const warnings: DefinitionWarning[] = []
  if (!TOOL_NAME.test(item.key)) {
    const why = 'clients may refuse its name; use 1 to 128 letters, digits, "_", "-" and "."'
    warnings.push({ why, at: ['name'] })
  }
  for (const { name, known, path } of unknownRequired(item.input.json)) {
    const why = `its input requires "${name}", which is none of its properties; ${didYouMean(name, known)}`
    warnings.push({ why, at: ['input', ...path, 'required'] })
  }
  return warnings
}
