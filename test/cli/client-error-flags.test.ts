// Tests that client errors name command-line flags in place of client options.
import { expect } from 'chai'
import { toFlag, withFlags } from '../../cli/client/flag-text.ts'
import { shellWord } from '../../cli/text.ts'
import { AuthError } from '../../client/errors.ts'

describe('client errors on the command line', () => {
  for (const [fix, shown] of [
    [{ option: 'issuerMatch', value: 'ignore-trailing-slash' }, 'log in with --issuer-match ignore-trailing-slash'],
    [
      { option: 'trustedIssuers', value: { 'https://a': ["https://b/';id;'"] } },
      `log in with --trusted-issuer ${shellWord("https://a=https://b/';id;'")}`,
    ],
    [{ option: 'assumePkceS256', value: ['https://a'] }, 'log in with --assume-pkce https://a'],
    [{ option: 'networkPolicy.allowHosts', value: ['10.0.0.7'] }, 'log in with --allow-host 10.0.0.7'],
    [{ option: 'resourceIndicator', value: 'omit' }, 'log in with --no-resource'],
    [{ option: 'dpop', value: 'auto' }, 'set dpop: "auto" in createAuthFetch'],
    [{ option: 'serverUrl', value: 'http://127.0.0.1:3000/mcp' }, 'mcp-host login http://127.0.0.1:3000/mcp'],
    [{ method: 'login', url: 'https://a/mcp' }, 'mcp-host login https://a/mcp'],
    [{ method: 'forgetClient', url: 'https://a/mcp' }, 'mcp-host logout https://a/mcp --forget-client'],
  ] as const) {
    it(`${JSON.stringify(fix)} -> ${shown}`, () => {
      const error = new AuthError('it failed', { code: 'login_failed', fix: { text: 'then', ...fix } })
      expect(withFlags(error)).to.equal(`it failed; then ${shown}`)
    })
  }

  for (const [said, shown] of [
    ['choose another one (authServerSelector)', 'choose another one (authServerSelector of createAuthFetch)'],
    ['the grant needs clientId', 'the grant needs --client-id'],
    ['nothing of the kind', 'nothing of the kind'],
  ] as const) {
    it(`${said} -> ${shown}`, () => {
      expect(withFlags(new AuthError(said, { code: 'invalid_options' }))).to.equal(shown)
    })
  }

  it('names the option if it has no flag', () => {
    expect([toFlag('issuerMatch'), toFlag('flowStore')]).to.deep.equal([
      '--issuer-match',
      'flowStore of createAuthFetch',
    ])
  })

  it('prints commands to paste without text of the server', () => {
    expect(['mcp.tools', '$(reboot)', "it's", 'a;b', 'https://a/?b&c'].map(shellWord)).to.deep.equal([
      'mcp.tools',
      "'$(reboot)'",
      "'it'\\''s'",
      "'a;b'",
      "'https://a/?b&c'",
    ])
  })
})
