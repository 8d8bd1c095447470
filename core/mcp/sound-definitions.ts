// Holds every definition of the toolsets against what it must be, and tells of those that clients or callers will stumble
// over, before any plugin is set up. For core/host.ts; the catalog then takes what is sound.
import { type Report, reporting, StartError } from '../http/start-error.ts'
import { describeToolset } from './catalog.ts'
import { compileDefinition, type FaultsOf } from './catalog-item.ts'
import { type Definition, labelOf } from './define.ts'
import { warningsOf } from './definition-warnings.ts'

/** The toolsets without what cannot be compiled, which is reported. */
export function soundDefinitions(
  toolsets: ReadonlyMap<string, readonly Definition[]>,
  faultsOf: FaultsOf,
  report: Report,
): Map<string, readonly Definition[]> {
  const sound = new Map<string, readonly Definition[]>()
  const seen = new Set<Definition>()
  for (const [toolset, definitions] of toolsets) {
    const where = describeToolset(toolset)
    const compiled = definitions.filter(definition => {
      const item = reporting(report, () => compileDefinition(definition, where, faultsOf))
      for (const { why, at } of item && !seen.has(definition) ? warningsOf(item) : []) {
        report(new StartError(`${where}: ${labelOf(definition)}: ${why}`, { of: definition, at }), 'warning')
      }
      seen.add(definition)
      return item !== undefined
    })
    sound.set(toolset, compiled)
  }
  return sound
}
