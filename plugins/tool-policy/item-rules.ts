// From rules and definitions to what each item asks of its callers. Everything that speaks of an item must hold: its own
// `access` and every rule that fits it. So rules only restrict, and their order means nothing.
import { type CatalogItem, globsOverlap, type ItemKind, matchesGlob } from '../../core/auth.ts'
import { didYouMean } from '../../core/index.ts'
import type { DetailedRule, FilledToolPolicy, Mode, Policy } from './options.ts'
import { allOf, compilePolicy, needScopeOrRole, type Path, type Requirement, type Tell } from './requirement.ts'

/** One thing that restricts an item. */
export interface Source {
  /** Where it is written: `rule "purge*"`, or the definition's access. */
  readonly name: string
  readonly requirement: Requirement
  readonly mode: Mode
}

export interface Rule extends Source {
  readonly key: string
  readonly kind: ItemKind
  readonly glob: string
  /** The glob is over folders of skills. */
  readonly ofSkills: boolean
  readonly visibility: DetailedRule['visibility']
}

/** What an item asks. */
export interface ItemRule {
  readonly sources: readonly Source[]
  /** Undefined: open to every caller of the route. */
  readonly enforced: Requirement | undefined
  /** What is only logged. */
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
  readonly tell: Tell
  /** What else may have been meant. */
  readonly otherwise?: string
}

/** A policy by its name; where there is none that is told, and the answer is one that nobody meets. */
export function policyNamed(name: string, { policies, at, tell, otherwise = '' }: Naming): Requirement {
  const policy = policies.get(name)
  if (!policy) tell(`there is no policy "${name}"; ${didYouMean(name, policies.keys())}${otherwise}`, at)
  return policy ?? needScopeOrRole(name, false)
}

const isDetailed = (value: string | Policy | DetailedRule): value is DetailedRule =>
  typeof value === 'object' && 'policy' in value

/** Compiles the options, which are at `place`. Tells of an unknown policy, and of one that nobody can meet. */
export function compileRules(
  { policies: named = {}, rules = {}, mode }: FilledToolPolicy,
  place: Path,
  tell: Tell,
): Rules {
  const policies = new Map(
    Object.entries(named).map(([name, policy]) => [name, compilePolicy(policy, [...place, 'policies', name], tell)]),
  )
  const list = Object.entries(rules).map(([key, value]): Rule => {
    const at = [...place, 'rules', key]
    const detailed: DetailedRule = isDetailed(value) ? value : { policy: value }
    const { policy, visibility, mode: own = mode } = detailed
    const [prefix = '', kind = 'tools'] = PREFIXES.find(([start]) => key.startsWith(start)) ?? []
    const requirement =
      typeof policy === 'string' ? policyNamed(policy, { policies, at, tell }) : compilePolicy(policy, at, tell)
    const called = typeof policy === 'string' ? ` (policy "${policy}")` : ''
    return {
      name: `rule "${key}"${called}`,
      key,
      kind,
      // URIs of skills are composed; a name as some disks have it is not.
      glob: prefix === SKILL ? key.slice(prefix.length).normalize('NFC') : key.slice(prefix.length),
      ofSkills: prefix === SKILL,
      requirement,
      mode: own,
      visibility,
    }
  })
  return { policies, list, mode }
}

/** A template as a glob of the URIs that it may match. */
const globOf = (template: string) => template.replace(/\{[^}]*\}/g, '*')

/** Composed; what is no encoding is the name itself. */
function decode(name: string): string {
  try {
    return decodeURIComponent(name).normalize('NFC')
  } catch {
    return name.normalize('NFC')
  }
}

const SKILL_URI = /^skill:\/\//i

/** The folders that a file of a skill is in, each by its path from the first on, as on a disk; none of any other resource. */
export function skillFoldersOf(uri: string): string[] {
  if (!SKILL_URI.test(uri)) return []
  const names = uri.replace(SKILL_URI, '').split('/').slice(0, -1)
  const decoded = names.map(decode)
  return decoded.map((_, at) => decoded.slice(0, at + 1).join('/'))
}

/** Whether a rule applies to an item; to a template, if it applies to any URI that the template can match. */
export function fits({ kind, glob, ofSkills }: Pick<Rule, 'kind' | 'glob' | 'ofSkills'>, item: CatalogItem): boolean {
  if (kind !== item.kind) return false
  if (item.kind === 'resources' && item.template !== undefined) {
    return ofSkills ? globsOverlap(`skill://${glob}/*`, decode(globOf(item.key))) : globsOverlap(glob, globOf(item.key))
  }
  return ofSkills ? skillFoldersOf(item.key).some(one => matchesGlob(glob, one)) : matchesGlob(glob, item.key)
}

/** What a definition's own `access` asks: a policy's name, else a scope, else a role. */
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

/** What one item asks; `scopes` are those that the route's metadata says there are. */
export function ruleOf(item: CatalogItem, rules: Rules, scopes: readonly string[] | undefined): ItemRule {
  const { access, visibility } = item.definition
  const fitting = rules.list.filter(rule => fits(rule, item))
  const sources = [...(access === undefined ? [] : [accessOf(access, rules, scopes)]), ...fitting]
  const said = fitting.flatMap(({ visibility }) => visibility ?? [])
  const listed = said.length > 0 ? !said.includes('hidden') : visibility === 'listed'
  return { sources, enforced: combined(sources, 'enforce'), shadow: combined(sources, 'shadow'), listed }
}
