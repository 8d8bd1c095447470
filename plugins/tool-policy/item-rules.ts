// The requirements of items: `access` of the definition and every matching rule must be met, in any order.
import { globsOverlap, type ItemKind, matchesGlob } from '../../core/auth.ts'
import { didYouMean } from '../../core/internal.ts'
import type { CatalogItem } from '../../core/plugin.ts'
import type { DetailedRule, FilledToolPolicy, Mode, Policy } from './options.ts'
import { allOf, compilePolicy, needScopeOrRole, type Path, type Report, type Requirement } from './requirement.ts'

export interface Source {
  /** A name such as `rule "purge*"`. */
  readonly name: string
  readonly requirement: Requirement
  readonly mode: Mode
}

export interface Rule extends Source {
  readonly key: string
  readonly kind: ItemKind
  readonly glob: string
  readonly ofSkills: boolean
  readonly visibility: DetailedRule['visibility']
}

export interface ItemRule {
  readonly sources: readonly Source[]
  /** Undefined: open to every caller of the route. */
  readonly enforced: Requirement | undefined
  readonly shadow: Requirement | undefined
  readonly listed: boolean
}

export interface Rules {
  readonly policies: ReadonlyMap<string, Requirement>
  readonly list: readonly Rule[]
  readonly mode: Mode
}

const SKILL = 'skill:'
const PREFIXES: ReadonlyArray<readonly [string, ItemKind]> = [
  ['prompt:', 'prompts'],
  ['resource:', 'resources'],
  [SKILL, 'resources'],
]

interface Naming {
  readonly policies: ReadonlyMap<string, Requirement>
  readonly at: Path
  readonly report: Report
  readonly otherwise?: string
}

/** Reports an unknown policy and returns a requirement that no one meets. */
export function policyNamed(name: string, { policies, at, report, otherwise = '' }: Naming): Requirement {
  const policy = policies.get(name)
  if (!policy) report(`there is no policy "${name}"; ${didYouMean(name, policies.keys())}${otherwise}`, at)
  return policy ?? needScopeOrRole(name, false)
}

const isDetailed = (value: string | Policy | DetailedRule): value is DetailedRule =>
  typeof value === 'object' && 'policy' in value

export function compileRules(
  { policies: named = {}, rules = {}, mode }: FilledToolPolicy,
  place: Path,
  report: Report,
): Rules {
  const policies = new Map(Object.entries(named).map(([name, policy]) => [name, compilePolicy(policy)]))
  const list = Object.entries(rules).map(([key, value]): Rule => {
    const at = [...place, 'rules', key]
    const { policy, visibility, mode: own = mode }: DetailedRule = isDetailed(value) ? value : { policy: value }
    const [prefix = '', kind = 'tools'] = PREFIXES.find(([start]) => key.startsWith(start)) ?? []
    const requirement =
      typeof policy === 'string' ? policyNamed(policy, { policies, at, report }) : compilePolicy(policy)
    const called = typeof policy === 'string' ? ` (policy "${policy}")` : ''
    return {
      name: `rule "${key}"${called}`,
      key,
      kind,
      // URIs of skills are in NFC; file names can have another form.
      glob: prefix === SKILL ? key.slice(prefix.length).normalize('NFC') : key.slice(prefix.length),
      ofSkills: prefix === SKILL,
      requirement,
      mode: own,
      visibility,
    }
  })
  return { policies, list, mode }
}

const globOf = (template: string) => template.replace(/\{[^{}]*\}/g, '*')

/** Decodes a name. Returns an invalid encoding unchanged. */
function decode(name: string): string {
  try {
    return decodeURIComponent(name).normalize('NFC')
  } catch {
    return name.normalize('NFC')
  }
}

const SKILL_URI = /^skill:\/\//i

/** Returns the folders of a skill file, by their paths from the first one; empty for other resources. */
export function skillFoldersOf(uri: string): string[] {
  if (!SKILL_URI.test(uri)) return []
  const names = uri.replace(SKILL_URI, '').split('/').slice(0, -1)
  const decoded = names.map(decode)
  return decoded.map((_, at) => decoded.slice(0, at + 1).join('/'))
}

/** True if a rule applies to an item. For a template: true if the rule applies to any URI that the template matches. */
export function fits({ kind, glob, ofSkills }: Pick<Rule, 'kind' | 'glob' | 'ofSkills'>, item: CatalogItem): boolean {
  if (kind !== item.kind) return false
  if (item.kind === 'resources' && item.template !== undefined) {
    return ofSkills ? globsOverlap(`skill://${glob}/*`, decode(globOf(item.key))) : globsOverlap(glob, globOf(item.key))
  }
  return ofSkills ? skillFoldersOf(item.key).some(one => matchesGlob(glob, one)) : matchesGlob(glob, item.key)
}

/** `access` names a policy, otherwise a scope or a role. */
function accessOf(access: string, { policies, mode }: Rules, scopes: readonly string[] | undefined): Source {
  const policy = policies.get(access)
  const isScope = scopes === undefined || scopes.includes(access)
  const name = `its access "${access}"${policy ? ' (policy)' : ''}`
  return { name, requirement: policy ?? needScopeOrRole(access, isScope), mode }
}

const combined = (sources: readonly Source[], mode: Mode) => {
  const requirements = sources.flatMap(source => (source.mode === mode ? source.requirement : []))
  return requirements.length > 0 ? allOf(requirements) : undefined
}

export function ruleOf(item: CatalogItem, rules: Rules, scopes: readonly string[] | undefined): ItemRule {
  const { access, visibility } = item.definition
  const fitting = rules.list.filter(rule => fits(rule, item))
  const sources = [...(access === undefined ? [] : [accessOf(access, rules, scopes)]), ...fitting]
  const visibilities = fitting.flatMap(({ visibility }) => visibility ?? [])
  const listed = visibilities.length > 0 ? !visibilities.includes('hidden') : visibility === 'listed'
  return { sources, enforced: combined(sources, 'enforce'), shadow: combined(sources, 'shadow'), listed }
}
