// Commands in the docs name existing commands and options, as the CLI itself reads them.
import { expect } from 'chai'
import type { Command } from '../../cli/command.ts'
import { readArguments } from '../../cli/command.ts'
import { COMMANDS } from '../../cli/main.ts'
import { PAGES, readBlocks, readPage } from '../support/doc-blocks.ts'

/** A command as it stands in a page: `whole` where it is to be typed as it is, else it is spoken of. */
interface Shown {
  readonly place: string
  readonly text: string
  readonly whole: boolean
}

const COMMAND =
  /(?:(?:npx )?(?<![\w./@-]|npm (?:create|install) )mcp-host|npx tsx cli\/main\.ts) ((?:[^\n|;&>()`#"']|<[^\n>]*>|"[^"]*"|'[^']*')*)/g

function shownIn(page: string): Shown[] {
  const inBlocks = readBlocks(page)
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

const loadCommands = async (): Promise<ReadonlyMap<string, Command>> =>
  new Map(await Promise.all([...COMMANDS].map(async ([name, load]) => [name, await load()] as const)))

function faultOf({ text, whole }: Shown, verbs: ReadonlyMap<string, Command>): string | undefined {
  const given = wordsOf(text)
  const words = given[0] === 'help' ? given.slice(1) : given
  const [name = ''] = words
  if (given !== words && /^MH\d{4}$/.test(name)) return undefined
  if (name === '' || name.startsWith('<') || name.startsWith('-')) return undefined
  const verb = verbs.get(name)
  if (!verb) return `unknown command "${name}"`
  try {
    readArguments(name, verb, words.slice(1))
    return undefined
  } catch (error) {
    const [said = ''] = String(error).split('\n')
    return !whole && /is missing|requires a value/.test(said) ? undefined : said
  }
}

describe('Command lines of the docs', () => {
  it('use existing commands and options', async () => {
    const verbs = await loadCommands()
    expect([...verbs.keys()]).to.include.members(['start', 'check', 'explain', 'call', 'doctor'])
    // These pages list messages, which are not commands.
    const shown = PAGES.filter(page => !page.startsWith('docs/codes')).flatMap(shownIn)
    const faults = shown.map(one => [one, faultOf(one, verbs)] as const).filter(([, fault]) => fault !== undefined)
    expect(faults.map(([{ place, text }, fault]) => `${place}: mcp-host ${text}: ${fault}`)).to.deep.equal([])
    expect(shown.length).to.be.above(30)
  })

  it('are recognized, and invalid ones are reported', () => {
    const verb: Command = { summary: '', example: '', positionals: ['URL'], options: {}, run: async () => undefined }
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
