// SKILL.md front matter: errors fail startup with file and line, and valid values reach clients unchanged.
import { expect } from 'chai'
import { parse } from 'yaml'
import { StartError } from '../../../core/plugin.ts'
import { removeFolders } from '../../config/folder.ts'
import { startFailure } from '../../fixtures/start-failure.ts'
import { stopHosts } from '../../support/start-host.ts'
import { serveFolder, serveSkills, skill, skillsConfig, writeSkills } from './serve-skills.ts'

/** Front matter of the skill `demo`, and the line and words that it is refused with. */
const WRONG: ReadonlyArray<readonly [text: string, line: number, words: string]> = [
  ['', 1, 'starts with its name and description'],
  ['# demo\n', 1, 'starts with its name and description'],
  ['\n---\nname: demo\ndescription: x\n---\n', 1, 'starts with its name and description'],
  [' ---\nname: demo\ndescription: x\n---\n', 1, 'starts with its name and description'],
  ['--- \nname: demo\ndescription: x\n---\n', 1, 'starts with its name and description'],
  ['---\nname: demo\ndescription: x\n', 1, 'the front matter has no final line `---`'],
  ['---\nname: demo\ndescription: x\n ---\n', 1, 'the front matter has no final line `---`'],
  ['---\nname: demo\ndescription: x\n----\n', 1, 'the front matter has no final line `---`'],
  ['---', 1, 'the front matter has no final line `---`'],
  ['---\n---\n', 2, 'it has no `name`'],
  ['---\n# nothing\n---\n', 2, 'it has no `name`'],
  ['---\n- name\n---\n', 2, 'must be keys and values'],
  ['---\njust text\n---\n', 2, 'must be keys and values'],
  ['---\ndescription: x\n---\n', 2, 'add `name: demo`'],
  ['---\nname: demo\n---\n', 2, 'it has no `description`'],
  ['---\n\nname: 7\ndescription: x\n---\n', 3, '`name` must be text'],
  ['---\ndescription: x\nname: Demo\n---\n', 3, '1 to 64 of a-z, 0-9 and -'],
  ['---\nname: -demo\ndescription: x\n---\n', 2, '1 to 64 of a-z, 0-9 and -'],
  ['---\nname: demo-\ndescription: x\n---\n', 2, '1 to 64 of a-z, 0-9 and -'],
  ['---\nname: de--mo\ndescription: x\n---\n', 2, '1 to 64 of a-z, 0-9 and -'],
  ['---\nname: de_mo\ndescription: x\n---\n', 2, '1 to 64 of a-z, 0-9 and -'],
  ['---\nname: ""\ndescription: x\n---\n', 2, '1 to 64 of a-z, 0-9 and -'],
  [`---\nname: ${'a'.repeat(65)}\ndescription: x\n---\n`, 2, '1 to 64 of a-z, 0-9 and -'],
  ['---\nname: other\ndescription: x\n---\n', 2, '`name` is "other", and the folder is called "demo"'],
  ['---\nname: demo\nlicense: MIT\ndescription: ""\n---\n', 4, '`description` is empty'],
  ['---\nname: demo\ndescription: "  "\n---\n', 3, '`description` is empty'],
  ['---\nname: demo\ndescription:\n---\n', 3, '`description` must be text'],
  ['---\nname: demo\ndescription: [x]\n---\n', 3, '`description` must be text'],
  [`---\nname: demo\ndescription: ${'é'.repeat(1025)}\n---\n`, 3, '`description` has 1025 characters; at most 1024'],
  ['---\nname: demo\ndescription: x\nname: demo\n---\n', 4, 'duplicate key "name", first on line 2'],
  ['---\nname: demo\ndescription: x\nmetadata:\n  a: 1\n  a: 2\n---\n', 6, 'duplicate key "a", first on line 5'],
  ['---\nname: demo\ndescription: x\n__proto__: y\n---\n', 4, 'the key __proto__ is not allowed'],
  ['---\nname: demo\ndescription: x\nmetadata: { b: { "__proto__": { admin: true } } }\n---\n', 4, '__proto__'],
  ['---\nname: demo\ndescription: a: b\n---\n', 3, 'not valid YAML'],
  ['---\nname: demo\ndescription: x\n\tlicense: y\n---\n', 4, 'not valid YAML'],
  ['---\nname: demo\ndescription: x\nwhat: !secret y\n---\n', 4, 'not valid YAML'],
  ['---\nname: demo\ndescription: x\n1: y\n---\n', 4, 'a key that is not text'],
  ['---\nname: demo\ndescription: x\n? [a]\n: y\n---\n', 4, 'a key that is not text'],
  ['---\nname: demo\ndescription: x\nn: 12345678901234567890\n---\n', 4, 'put it in quotes'],
  ['---\nname: demo\ndescription: x\nn: .inf\n---\n', 4, 'put it in quotes'],
  ['---\nname: demo\ndescription: x\nn: .nan\n---\n', 4, 'put it in quotes'],
  ['---\nname: demo\ndescription: x\nn: -0\n---\n', 4, 'put it in quotes'],
  ['---\nname: demo\ndescription: *nobody\n---\n', 3, '*nobody: anchors and aliases are not supported'],
  ['---\nname: demo\ndescription: x\na: &a [*a]\n---\n', 4, '&a: anchors and aliases are not supported'],
  [`---\nname: demo\ndescription: x\nn: ${'[ '.repeat(40)}${']'.repeat(40)}\n---\n`, 4, 'nested more than 32 deep'],
  [`---\nname: demo\ndescription: x\nn: ${'['.repeat(30_000)}${']'.repeat(30_000)}\n---\n`, 4, 'more than 5000 tokens'],
  [`---\nname: demo\ndescription: x\nn: ${'['.repeat(2_400)}${']'.repeat(2_400)}\n---\n`, 4, 'nested'],
  [`---\nname: demo\ndescription: x\nn: ${'y'.repeat(65_536)}\n---\n`, 1, 'more than 65536 bytes'],
  [bomb(9), 4, '&l0: anchors and aliases are not supported'],
  [
    `---\nname: demo\ndescription: x\na: &a ${'y'.repeat(9_000)}\nb: [${'*a, '.repeat(49)}*a]\n---\n`,
    4,
    'anchors and aliases are not supported',
  ],
]

/** Lists of lists of the same: ten times as much with each line. */
function bomb(levels: number): string {
  const lines = Array.from({ length: levels }, (_, at) => `l${at + 1}: &l${at + 1} [${`*l${at}, `.repeat(9)}*l${at}]`)
  return `---\nname: demo\ndescription: x\nl0: &l0 [lol]\n${lines.join('\n')}\n---\n`
}

const FINE: ReadonlyArray<readonly [text: string, description: unknown]> = [
  ['---\nname: demo\ndescription: x\n---', 'x'],
  ['---\r\nname: demo\r\ndescription: x\r\n---\r\nbody', 'x'],
  ['---\nname: demo\ndescription: x\n---  \n---\nnot: read\n---\n', 'x'],
  ['\uFEFF---\nname: demo\ndescription: x\n---\n', 'x'],
  ['---\n# a comment\nname: "demo"\ndescription: >\n  folded\n  text\n---\n', 'folded text\n'],
  ['---\nname: demo\ndescription: |\n  one\n  ---\n  two\n---\n', 'one\n---\ntwo\n'],
  [`---\nname: demo\ndescription: ${'é'.repeat(1024)}\n---\n`, 'é'.repeat(1024)],
  [
    '---\nname: demo\ndescription: x\nmetadata: { same: "*d", r: R&D, g: a*b, when: 2026-11-23, yes: no, octal: 0o7, f: 1.5, e: }\n---\n',
    'x',
  ],
  ['---\nname: demo\ndescription: x\nallowed-tools: Bash(git:*) Read\nconstructor: a\ntoString: b\n---\n', 'x'],
]

describe('SKILL.md front matter', () => {
  afterEach(stopHosts)
  after(removeFolders)

  it('fails startup with file and line if it is invalid', async () => {
    for (const [text, line, words] of WRONG) {
      const folder = await writeSkills({ 'demo/SKILL.md': text, 'good/SKILL.md': skill('good') })
      const error = await startFailure(skillsConfig(), folder)
      const label = JSON.stringify(text.slice(0, 100))
      expect(error, label).to.be.instanceOf(StartError)
      expect(error.message, label).to.contain(`skills/demo/SKILL.md:${line}: `)
      expect(error.message, label).to.contain(words)
      expect(error.message.length, label).to.be.below(1_000)
    }
  })

  it('is sent to clients unchanged', async () => {
    for (const [text, description] of FINE) {
      const { result } = await serveSkills({ 'demo/SKILL.md': text })
      const { skill: found } = await result('skills/get', { uri: 'skill://demo/SKILL.md' })
      const { contents } = await result('resources/read', { uri: found.uri })
      expect(found.frontmatter.description).to.equal(description)
      const [, yaml = ''] = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---/.exec(contents[0].text) ?? []
      expect(found.frontmatter, text).to.deep.equal(JSON.parse(JSON.stringify(parse(yaml))))
      await stopHosts()
    }
  })

  it('reports up to 20 errors, sorted by position', async () => {
    const bad = Array.from({ length: 30 }, (_, at) => [`s${at}/SKILL.md`, 'no'] as const)
    const { message } = await startFailure(skillsConfig(), await writeSkills(Object.fromEntries(bad)))
    expect(message.match(/SKILL\.md:1:/g)).to.have.lengthOf(20)
    expect(message).to.contain('10 more mistakes')
    const places = [...message.matchAll(/skills\/(s\d+)\/SKILL/g)].map(([, name]) => name)
    expect(places).to.deep.equal([...places].sort())
  })

  it('warns about duplicate skill names and reserved keys', async () => {
    const { log } = await serveFolder(
      await writeSkills({
        'a/same/SKILL.md': skill('same'),
        'b/same/SKILL.md': skill('same'),
        'c/SKILL.md': skill('c', 'metadata:\n  io.modelcontextprotocol/x: 1\n'),
      }),
    )
    const warned = log.filter(({ level }) => level === 'warn').map(line => JSON.stringify(line))
    expect(warned.filter(text => text.includes('skills/a/same/SKILL.md has the same name'))).to.have.lengthOf(1)
    expect(warned.filter(text => text.includes('io.modelcontextprotocol/x'))).to.have.lengthOf(1)
  })
})
