// Checks the definitions of toolsets at startup, before plugin set-up.
import { type Report, StartError, tryReport } from '../../http/errors.ts'
import type { CompiledRoute } from '../routes/routes.ts'
import { collect, PAGE_SIZE, type View } from '../routes/view.ts'
import { describeToolset } from './catalog.ts'
import { compileDefinition, type ProblemsOf } from './catalog-item.ts'
import { type Definition, labelOf } from './define.ts'
import { warningsOf } from './definition-warnings.ts'

export function validDefinitions(
  toolsets: ReadonlyMap<string, readonly Definition[]>,
  problemsOf: ProblemsOf,
  report: Report,
): Map<string, readonly Definition[]> {
  const valid = new Map<string, readonly Definition[]>()
  const seen = new Set<Definition>()
  for (const [toolset, definitions] of toolsets) {
    const where = describeToolset(toolset)
    const compiled = definitions.filter(definition => {
      const item = tryReport(report, () => compileDefinition(definition, where, problemsOf))
      for (const { why, at } of item && !seen.has(definition) ? warningsOf(item) : []) {
        report(new StartError('MH1106', `${where}: ${labelOf(definition)}: ${why}`, { of: definition, at }), 'warning')
      }
      seen.add(definition)
      return item !== undefined
    })
    valid.set(toolset, compiled)
  }
  return valid
}

export function reportNameClashes(
  routes: readonly CompiledRoute[],
  toolsets: ReadonlyMap<string, readonly Definition[]>,
  report: Report,
): void {
  const items = (name: string) =>
    (toolsets.get(name) ?? []).map(definition => compileDefinition(definition, describeToolset(name), () => []))
  for (const names of routes.flatMap(route => route.knownCombinations())) {
    collect({ items, sourceOf: () => undefined }, { toolsets: names, extra: [] }, report)
  }
}

/** Warns about routes with more tools than one list page, because some clients read only the first page. */
export function warnOfPages(
  routes: readonly CompiledRoute[],
  viewOf: (route: CompiledRoute, toolsets: readonly string[]) => Pick<View, 'tools' | 'isUnlisted'>,
  report: Report,
): void {
  for (const route of routes) {
    const counts = route.knownCombinations().map(names => {
      const { tools, isUnlisted } = viewOf(route, names)
      return tools.size <= PAGE_SIZE ? tools.size : [...tools.values()].filter(tool => !isUnlisted(tool)).length
    })
    const most = Math.max(0, ...counts)
    if (most <= PAGE_SIZE) continue
    const why = `its ${most} tools are more than one list page (${PAGE_SIZE}); Cursor, Codex and others may read only the first page`
    report(
      new StartError('MH1114', `${why}; split the route or use \`search\``, { at: ['routes', route.path] }),
      'warning',
    )
  }
}
