// Tests that command lines of the docs use existing commands and options.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { readArguments } from '../../cli/arguments.ts'
import type { Verb } from '../../cli/verb.ts'
import { blocksOf, PAGES, ROOT, readPage } from '../support/doc-blocks.ts'

/** A command as it stands in a page: `whole` where it is to be typed as it is, else it is spoken of. */
interface Shown {
  readonly place: string
  readonly text: string
  readonly whole: boolean
}

const COMMAND =
  /(?:(?:npx )?(?<![\w./@-]|npm (?:create|install) )mcp-host|npx tsx cli\/main\.ts) ((?:[^\n|;&>()`#"']|<[^\n>]*>|"[^"]*"|'[^']*')*)/g

function shownIn(page: string): Shown[] {
  const inBlocks = blocksOf(page)
    .filter(({ language }) => ['sh', 'console', ''].includes(language))
    .flatMap(({ language, code, line }) => {
      const typed = language === 'sh' ? code.replaceAll('\\\n', ' ') : code.match(/^\$ .*$/gm)?.join('\n')
      return [...(typed ?? '').matchAll(COMMAND)].map(([, text = '']) => ({
        place: `${page}:${line}`,
        text,
        whole: true,
      }))
    })
  const prose = readPage(page).replaceAll(/^ *```[\s\S]*?^ *```/gm, '')
  const inline = [...prose.matchAll(/`([^`\n]+)`/g)]
    .flatMap(([, code = '']) => [...code.matchAll(COMMAND)])
    .map(([, text = '']) => ({ place: page, text, whole: false }))
  return [...inBlocks, ...inline]
}

const wordsOf = (text: string) =>
  (text.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? []).map(word => word.replaceAll(/["']/g, ''))

/** The options of a verb as its help lists them. */
function verbByHelp(name: string): Verb {
  const { stdout } = spawnSync(process.execPath, ['--import', 'tsx', 'cli/main.ts', name, '--help'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const options = [...stdout.matchAll(/^ *(?:-(\w), )? *--([\w-]+)( <)?/gm)].map(([, short, option = '', value]) => [
    option,
    { type: value === undefined ? 'boolean' : 'string', help: '', ...(short !== undefined && { short }) },
  ])
  return { summary: '', options: Object.fromEntries(options), run: async () => undefined }
}

/** Prints what the verbs of these modules say of themselves. */
const TELL = `
const told = JSON.parse(process.argv[1]).map(async ([name, file, exported]) => [name, (await import(file))[exported]])
console.log(JSON.stringify(await Promise.all(told)))
`

/**
 * By their rows in cli/main.ts, which runs when it is imported. In a process of its own: modules that are imported here beside
 * those that tests import would be there twice, and coverage cannot add the two up.
 */
function findVerbs(): ReadonlyMap<string, Verb> {
  const rows = [
    ...readFileSync(join(ROOT, 'cli/main.ts'), 'utf8').matchAll(
      /^ {6}'?([\w-]+)'?: async \(\) =>\s+(?:\(await import\('(\S+)'\)\)\.(\w+)|\w+),$/gm,
    ),
  ]
  const modules = rows.flatMap(([, name, file, exported]) =>
    file === undefined ? [] : [[name, pathToFileURL(join(ROOT, 'cli', file)).href, exported]],
  )
  const options = ['--import', 'tsx', '--input-type=module', '--eval', TELL, JSON.stringify(modules)]
  const { stdout, stderr } = spawnSync(process.execPath, options, { cwd: ROOT, encoding: 'utf8' })
  expect(stdout, stderr).to.match(/^\[/)
  const told = new Map(JSON.parse(stdout) as Array<readonly [string, Verb]>)
  return new Map(rows.map(([, name = '']) => [name, told.get(name) ?? verbByHelp(name)]))
}

function faultOf({ text, whole }: Shown, verbs: ReadonlyMap<string, Verb>): string | undefined {
  const words = wordsOf(text)
  const [name = ''] = words
  if (name === '' || name.startsWith('<') || name.startsWith('-')) return undefined
  const verb = verbs.get(name)
  if (!verb) return `there is no verb "${name}"`
  try {
    readArguments(name, verb, words.slice(1))
    return undefined
  } catch (error) {
    const [said = ''] = String(error).split('\n')
    return !whole && /is missing|needs a value/.test(said) ? undefined : said
  }
}

describe('Command lines of the docs', () => {
  it('use existing commands and options', function () {
    // One of them is a process.
    this.timeout(60_000)
    const verbs = findVerbs()
    expect([...verbs.keys()]).to.include.members(['start', 'check', 'explain', 'call', 'doctor'])
    const shown = PAGES.flatMap(shownIn)
    const faults = shown.map(one => [one, faultOf(one, verbs)] as const).filter(([, fault]) => fault !== undefined)
    expect(faults.map(([{ place, text }, fault]) => `${place}: mcp-host ${text}: ${fault}`)).to.deep.equal([])
    expect(shown.length).to.be.above(30)
  })

  it('are recognized, and invalid ones are reported', () => {
    const verb: Verb = { summary: '', positionals: ['URL'], options: {}, run: async () => undefined }
    const verbs = new Map([['list', verb]])
    const fault = (text: string, whole = true) => faultOf({ place: '', text, whole }, verbs)
    expect([fault('list https://a.example'), fault('list', false), fault('--help')]).to.deep.equal([
      undefined,
      undefined,
      undefined,
    ])
    expect([fault('lst'), fault('list'), fault('list x --wide')].map(Boolean)).to.deep.equal([true, true, true])
  })
})
