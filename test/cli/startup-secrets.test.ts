// Tests that the output of a failed startup contains no secret, also with --verbose.
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { CORE, configText, runCli, stopAll } from './in-process.ts'

after(removeFolders)
after(stopAll)

const CANARY = 'hunter2'
/** JavaScript: an address that is none, from outside of the config. */
const REDIS = `import { readFileSync } from 'node:fs'
const address = readFileSync(new URL('redis.txt', import.meta.url), 'utf8')`

const configs: Record<string, Record<string, string>> = {
  'a Redis URL in JSON': {
    'mcp.config.json': JSON.stringify({
      server: { name: 'a', version: '1' },
      toolsets: { none: [] },
      routes: { '/': { toolsets: 'none' } },
      redis: { url: `redis://:a ${CANARY}@127.0.0.1` },
    }),
  },
  'a Redis URL with a stray percent sign': {
    'mcp.config.mjs': configText({ plugins: `'change-bus-redis': { url: 'redis://:${CANARY}%zz@127.0.0.1' }` }),
  },
  'a key in the place of its file': {
    'mcp.config.mjs': configText({ plugins: `'change-bus-redis': { url: 'rediss://a', tls: { key: '${CANARY}' } }` }),
  },
  'a URL that the config itself cannot read': {
    'mcp.config.mjs': configText({ before: `${REDIS}\nnew URL(address)` }),
  },
  'a plugin that throws with what it was given': {
    'mcp.config.mjs': configText({
      before: `import * as core from '${CORE}'
${REDIS}
const options = { type: 'object', additionalProperties: false, properties: { at: { type: 'string', writeOnly: true } } }
const own = core.definePlugin({ options, setup(_, { at }) { new URL(at) } })`,
      plugins: `own: own({ at: address })`,
    }),
  },
}

describe('failed startup', () => {
  for (const [what, files] of Object.entries(configs)) {
    it(`prints no secret of ${what}`, async () => {
      const folder = await makeFolder({ ...files, 'redis.txt': `redis://:${CANARY}@[` })
      const ends = await Promise.all([['check'], ['explain', '--verbose']].map(args => runCli(args, folder)))
      for (const { code, stdout, stderr } of ends) {
        expect(code, stderr).to.be.oneOf([1, 2])
        expect(`${stdout}${stderr}`).to.not.include(CANARY)
      }
    })
  }
})
