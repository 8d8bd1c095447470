// Tests the WWW-Authenticate parser, hostile headers, and the interpretation of 401 and 403 responses.
import { expect } from 'chai'
import fc from 'fast-check'
import { parseChallengeList, readChallenge } from '../../client/challenge.ts'
import { caseCount } from '../support/thorough.ts'
import { authErrorOf } from './support/auth-error-of.ts'

/** `[scheme, { name: [values] }]` or `[scheme, token68]`. */
const read = (text: string) =>
  parseChallengeList(text).map(({ scheme, token68, params }) => [scheme, token68 ?? Object.fromEntries(params)])

const cueOf = (status: number, ...headers: string[]) => {
  const list = new Headers()
  for (const header of headers) list.append('WWW-Authenticate', header)
  return readChallenge({ status, headers: list })
}

describe('R-16: parsing of WWW-Authenticate (RFC 9110 lists)', () => {
  const cases: [text: string, challenges: unknown[]][] = [
    ['', []],
    ['Bearer', [['bearer', {}]]],
    ['bEARER Realm="x"', [['bearer', { realm: ['x'] }]]],
    ['Bearer realm="x", error="invalid_token"', [['bearer', { realm: ['x'], error: ['invalid_token'] }]]],
    ['Bearer realm = "x" ,\terror= "y"', [['bearer', { realm: ['x'], error: ['y'] }]]],
    [
      'Basic realm="a, Bearer b=\\"c\\"", Bearer scope=x',
      [
        ['basic', { realm: ['a, Bearer b="c"'] }],
        ['bearer', { scope: ['x'] }],
      ],
    ],
    [
      'Negotiate, Bearer realm="x"',
      [
        ['negotiate', {}],
        ['bearer', { realm: ['x'] }],
      ],
    ],
    [
      'Negotiate YII/+a==, Bearer',
      [
        ['negotiate', 'YII/+a=='],
        ['bearer', {}],
      ],
    ],
    [
      'Basic abc=, Bearer a=b',
      [
        ['basic', 'abc='],
        ['bearer', { a: ['b'] }],
      ],
    ],
    ['Bearer abc=def', [['bearer', { abc: ['def'] }]]],
    ['Bearer abc==def', [['bearer', { abc: ['=def'] }]]],
    [', ,Bearer a=1,,b=2, ,', [['bearer', { a: ['1'], b: ['2'] }]]],
    ['Bearer a="\\\\\\"\\x"', [['bearer', { a: ['\\"x'] }]]],
    ['Bearer a="", b=""', [['bearer', { a: [''], b: [''] }]]],
    ['Bearer a="1", a="2", A=3', [['bearer', { a: ['1', '2', '3'] }]]],
    [
      'Bearer a="x", Bearer b="y"',
      [
        ['bearer', { a: ['x'] }],
        ['bearer', { b: ['y'] }],
      ],
    ],
    [
      'Digest a="x", DPoP algs="ES256 RS256"',
      [
        ['digest', { a: ['x'] }],
        ['dpop', { algs: ['ES256 RS256'] }],
      ],
    ],
    // What servers get wrong, and is clear all the same.
    [
      'Bearer resource_metadata=https://h/.well-known/x?a=b',
      [['bearer', { resource_metadata: ['https://h/.well-known/x?a=b'] }]],
    ],
    ['Bearer realm="x" resource_metadata="y"', [['bearer', { realm: ['x'], resource_metadata: ['y'] }]]],
    ['Bearer realm="x" Basic realm="y", error="z"', [['bearer', { realm: ['x'], error: ['z'] }]]],
    // What says nothing.
    ['Bearer a="open, b="c', [['bearer', { a: ['open, b='] }]]],
    ['Bearer a="open', [['bearer', {}]]],
    ['"quoted", Bearer a=b', [['bearer', { a: ['b'] }]]],
    ['Bear(er) x=1, Bearer a=b', [['bearer', { a: ['b'] }]]],
    ['a=b, c=d', []],
    ['=, ==, Bearer a=b', [['bearer', { a: ['b'] }]]],
    ['Bearer é=1, a=b', [['bearer', { a: ['b'] }]]],
    ['Bearer __proto__="x"', [['bearer', { ['__proto__']: ['x'] }]]],
  ]
  for (const [text, challenges] of cases) {
    it(`parses ${text || 'an empty header'}`, () => {
      expect(read(text)).to.deep.equal(challenges)
    })
  }

  it('parses several header fields', () => {
    expect(cueOf(401, 'Basic realm="x"', 'Bearer scope="a b"')?.scope).to.deep.equal(['a', 'b'])
  })

  const token = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}$/)
  const value = fc.string({ maxLength: 30 })
  const quote = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`
  const space = fc.constantFrom('', ' ', '\t', '  ')
  const param = fc.tuple(token, space, space, value)
  const challenge = fc.oneof(
    fc.record({ scheme: token, params: fc.array(param, { minLength: 1, maxLength: 5 }) }),
    fc.record({ scheme: token, token68: fc.stringMatching(/^[A-Za-z0-9._~+/-]{1,12}={0,2}$/) }),
    fc.record({ scheme: token }),
  )
  interface Made {
    scheme: string
    token68?: string
    params?: [string, string, string, string][]
  }
  const write = ({ scheme, token68, params }: Made) =>
    [
      scheme,
      token68 ?? params?.map(([name, before, after, text]) => `${name}${before}=${after}${quote(text)}`).join(', '),
    ]
      .filter(Boolean)
      .join(' ')

  it('parses every generated valid header (property)', () => {
    fc.assert(
      fc.property(fc.array(challenge, { maxLength: 5 }), fc.constantFrom(', ', ',', ' ,\t'), (made, comma) => {
        const parsed = parseChallengeList(made.map(write).join(comma))
        expect(parsed.map(({ scheme, token68 }) => [scheme, token68])).to.deep.equal(
          (made as Made[]).map(({ scheme, token68 }) => [scheme.toLowerCase(), token68]),
        )
        for (const [index, { params = [] }] of (made as Made[]).entries()) {
          const flat = [...(parsed[index]?.params ?? [])].flatMap(([name, values]) =>
            values.map(text => `${name}=${text}`),
          )
          const wanted = params.map(([name, , , text]) => `${name.toLowerCase()}=${text}`)
          expect(flat.sort()).to.deep.equal(wanted.sort())
        }
      }),
      { numRuns: caseCount(500, 30) },
    )
  })

  it('never throws, and returns only values from the header (property)', () => {
    const alphabet = fc.constantFrom('"', '\\', ',', '=', ' ', '\t', 'a', 'Bearer', 'x_', 'scope', '/', 'é', '\u0000')
    fc.assert(
      fc.property(fc.array(alphabet, { maxLength: 60 }), parts => {
        const text = parts.join('')
        for (const { scheme, token68 = '', params } of parseChallengeList(text)) {
          expect(text.toLowerCase()).to.include(scheme)
          expect(text).to.include(token68)
          for (const [name, values] of params) {
            expect(text.toLowerCase()).to.include(name)
            for (const each of values) expect(text.replaceAll('\\', '')).to.include(each.replaceAll('\\', ''))
          }
        }
      }),
      { numRuns: caseCount(2_000, 100) },
    )
  })

  const hostile: [name: string, piece: string, head?: string][] = [
    ['spaces', ' ', 'Bearer'],
    ['commas', ', '],
    ['quotes', '"', 'Bearer a='],
    ['backslashes', '\\', 'Bearer a="'],
    ['escaped quotes', '\\"', 'Bearer a="'],
    ['equals signs', '=', 'Bearer a'],
    ['letters', 'a'],
    ['spaced equals signs', 'a = ', 'Bearer '],
    ['open strings', 'a=" ,', 'Bearer '],
    ['names without values', 'a ', 'Bearer '],
    ['equal names', 'a=b,', 'Bearer '],
    ['slashes', '/', 'Bearer '],
    ['schemes', 'Bearer x,'],
    ['missing commas', 'a="b" ', 'Bearer '],
    ['text and equals signs', 'a==', 'Bearer '],
  ]
  for (const [name, piece, head = ''] of hostile) {
    // Quadratic time would take minutes, and the test would time out.
    it(`parses 1 MB of ${name} in linear time`, () => {
      const text = head + piece.repeat(1_048_576 / piece.length)
      expect(parseChallengeList(text)).to.be.an('array')
    })
  }
})

describe('R-17: parameters inside other values', () => {
  const text = 'Bearer realm="scope=\\"evil\\", resource_metadata=https://evil.example", x_scope="evil", scope="good"'

  it('are ignored in quoted strings and as suffixes of other names', () => {
    const cue = cueOf(401, text)
    expect(cue?.scope).to.deep.equal(['good'])
    expect(cue?.resourceMetadata).to.deep.equal([])
  })

  it('are ignored in the challenge of another scheme', () => {
    const cue = cueOf(401, 'Basic scope="evil", resource_metadata="https://evil.example", Bearer scope="good"')
    expect(cue?.scope).to.deep.equal(['good'])
    expect(cue?.resourceMetadata).to.deep.equal([])
  })
})

describe('R-18: several resource_metadata parameters', () => {
  it('are collected in order, each once, from one challenge and from several', () => {
    const cue = cueOf(
      401,
      'Bearer resource_metadata="https://a/1", resource_metadata="https://a/2"',
      'DPoP resource_metadata="https://a/3", resource_metadata="https://a/1"',
    )
    expect(cue?.resourceMetadata).to.deep.equal(['https://a/1', 'https://a/2', 'https://a/3'])
  })
})

describe('R-19: scope without resource_metadata', () => {
  const cases: [header: string, scope: string[] | undefined][] = [
    ['Bearer scope="mcp:read  files:write"', ['mcp:read', 'files:write']],
    ['Bearer scope="a a b"', ['a', 'b']],
    ['Bearer scope=""', undefined],
    ['Bearer scope="  "', undefined],
    ['Bearer scope="", scope="b"', ['b']],
    ['Bearer scope="a \\"b\\" c"', ['a', 'c']],
    ['Bearer', undefined],
  ]
  for (const [header, scope] of cases) {
    it(`reads the scope of ${header}`, () => {
      const cue = cueOf(401, header)
      expect(cue?.scope).to.deep.equal(scope)
      expect(cue?.resourceMetadata).to.deep.equal([])
    })
  }
})

describe('R-20: DPoP challenges', () => {
  it('lead to discovery with the same parameters as Bearer', () => {
    const cue = cueOf(401, 'DPoP algs="ES256", scope="a", resource_metadata="https://a/1"')
    expect(cue).to.include({ status: 401, scheme: 'DPoP' })
    expect(cue?.scope).to.deep.equal(['a'])
    expect(cue?.resourceMetadata).to.deep.equal(['https://a/1'])
  })

  it('do not require DPoP if Bearer is offered too', () => {
    expect(cueOf(401, 'DPoP algs="ES256", Bearer')?.scheme).to.equal('Bearer')
  })

  it('provide a nonce even next to other errors', () => {
    const headers = new Headers({
      'WWW-Authenticate': 'Bearer error="invalid_token", DPoP error="use_dpop_nonce"',
      'DPoP-Nonce': 'n-1',
    })
    expect(readChallenge({ status: 401, headers })).to.include({ error: 'use_dpop_nonce', dpopNonce: 'n-1' })
  })
})

describe('R-6: responses that require authorization', () => {
  it('include every 401 with Bearer, DPoP or without a challenge', () => {
    expect(cueOf(401, 'Bearer error="invalid_token"')).to.include({ status: 401, error: 'invalid_token' })
    expect(cueOf(401)).to.deep.include({ status: 401, scheme: undefined, scope: undefined, resourceMetadata: [] })
  })

  it('include a 403 with insufficient_scope', () => {
    const cue = cueOf(403, 'Bearer error="insufficient_scope", scope="admin"')
    expect(cue).to.deep.include({ status: 403, error: 'insufficient_scope', scope: ['admin'] })
    expect(cueOf(403, 'DPoP error=insufficient_scope')?.scheme).to.equal('DPoP')
  })

  for (const [status, ...headers] of [
    [403],
    [403, 'Bearer'],
    [403, 'Bearer error="invalid_token"'],
    [403, 'Basic error="insufficient_scope"'],
    [403, 'Bearer error_description="insufficient_scope"'],
    [403, 'Bearer error="Insufficient_Scope"'],
    [200, 'Bearer'],
    [400, 'Bearer error="invalid_token"'],
    [407, 'Bearer'],
    [500],
  ] as [number, ...string[]][]) {
    it(`exclude ${status} ${headers.join()}`, () => {
      expect(cueOf(status, ...headers)).to.equal(undefined)
    })
  }

  it('show a description without control characters, and truncated', () => {
    const cue = cueOf(401, `Bearer error_description="a\u009b2J${'x'.repeat(1_000)}"`)
    expect(cue?.errorDescription)
      .to.match(/^a\\u009b2Jx+…$/)
      .and.have.length.below(520)
  })
})

describe('R-7: 401 with unsupported schemes', () => {
  it('is an error that lists the schemes, with advice', async () => {
    const error = await authErrorOf(() => cueOf(401, 'Basic realm="x"', 'Digest nonce="y", Negotiate'))
    expect(error.code).to.equal('unsupported_challenge')
    expect(error.message).to.include('basic, digest, negotiate').and.include('Authorization header')
  })

  it('without a readable challenge leads to the well-known locations', () => {
    expect(cueOf(401, '"broken"')?.scheme).to.equal(undefined)
  })
})
