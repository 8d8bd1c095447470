// Parameter styles against the examples of the specification.
import { expect } from 'chai'
import type { ParameterPlace, ParameterStyle } from '../../../plugins/openapi/operation.ts'
import { type Api, contextOf, operationAt, parameter, requesterOf, resultOf, sentBy, startApi, textOf } from './api.ts'

const STRING = 'blue'
const ARRAY = ['blue', 'black', 'brown']
const OBJECT = { R: 100, G: 200, B: 150 }

const TYPES = ['empty', 'string', 'array', 'object'] as const
/** An undefined text is refused: a path segment cannot be empty. */
type Row = readonly [style: ParameterStyle, explode: boolean, ...texts: readonly (string | undefined)[]]

/** "Style Examples" of OpenAPI 3.1.2, which corrects the label row of 3.0.3. */
const STYLE_EXAMPLES: readonly Row[] = [
  ['matrix', false, ';color', ';color=blue', ';color=blue,black,brown', ';color=R,100,G,200,B,150'],
  ['matrix', true, ';color', ';color=blue', ';color=blue;color=black;color=brown', ';R=100;G=200;B=150'],
  ['label', false, undefined, '.blue', '.blue,black,brown', '.R,100,G,200,B,150'],
  ['label', true, undefined, '.blue', '.blue.black.brown', '.R=100.G=200.B=150'],
  ['simple', false, undefined, 'blue', 'blue,black,brown', 'R,100,G,200,B,150'],
  ['simple', true, undefined, 'blue', 'blue,black,brown', 'R=100,G=200,B=150'],
  ['form', false, 'color=', 'color=blue', 'color=blue,black,brown', 'color=R,100,G,200,B,150'],
  ['form', true, 'color=', 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
  [
    ...(['spaceDelimited', false, 'color=', 'color=blue'] as const),
    ...['color=blue%20black%20brown', 'color=R%20100%20G%20200%20B%20150'],
  ],
  ['spaceDelimited', true, 'color=', 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
  [
    ...(['pipeDelimited', false, 'color=', 'color=blue'] as const),
    ...['color=blue%7Cblack%7Cbrown', 'color=R%7C100%7CG%7C200%7CB%7C150'],
  ],
  ['pipeDelimited', true, 'color=', 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
  ...[false, true].map(
    (explode): Row => [
      ...(['deepObject', explode, 'color=', 'color=blue'] as const),
      ...['color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown'],
      ...['color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150'],
    ],
  ),
]

/** The cells that the specification marks "n/a": their behavior is undefined. They are sent like `form`, or with indices. */
const UNDEFINED: Readonly<Partial<Record<ParameterStyle, readonly [unexploded: string, exploded: string]>>> = {
  spaceDelimited: ['empty string', 'empty string array object'],
  pipeDelimited: ['empty string', 'empty string array object'],
  deepObject: ['empty string array object', 'empty string array'],
}

const PLACES: Readonly<Record<ParameterStyle, readonly ParameterPlace[]>> = {
  matrix: ['path'],
  label: ['path'],
  simple: ['path', 'header'],
  form: ['query', 'cookie'],
  spaceDelimited: ['query'],
  pipeDelimited: ['query'],
  deepObject: ['query'],
}

const VALUES = { empty: '', string: STRING, array: ARRAY, object: OBJECT }

/** In a header nothing is encoded; in a cookie a comma is encoded and pairs are separate. */
const expectedIn = (place: ParameterPlace, text: string): string =>
  place === 'cookie' ? text.replaceAll(',', '%2C').replaceAll('&', '; ') : text

describe('Parameters of an OpenAPI operation', () => {
  let api: Api
  let calls: ReturnType<typeof requesterOf>

  before(async () => {
    api = await startApi()
    calls = requesterOf(api)
  })
  after(async () => {
    await calls.request.close()
    await api[Symbol.asyncDispose]()
  })

  async function written(given: Parameters<typeof parameter>[0], value: unknown): Promise<string> {
    const path = given.in === 'path' ? `/things/${'{color}'}` : '/things'
    const operation = operationAt(api.url, {
      path,
      parameters: [parameter({ schema: { additionalProperties: true }, ...given })],
    })
    const before = api.requests.length
    const result = await resultOf(calls.request(operation, { [given.name]: value }, contextOf()))
    const sent = api.requests[before]
    if (!sent) return textOf(result)
    if (given.in === 'path') return sent.url.slice('/things/'.length)
    if (given.in === 'header') return String(sent.headers[given.name])
    if (given.in === 'cookie') return sent.headers.cookie ?? ''
    return /\?(.*)/.exec(sent.url)?.[1] ?? ''
  }

  let cells = 0
  let undefinedCells = 0
  for (const [style, explode, ...texts] of STYLE_EXAMPLES) {
    const others = UNDEFINED[style]?.[explode ? 1 : 0].split(' ') ?? []
    undefinedCells += others.length
    for (const place of PLACES[style]) {
      for (const [index, type] of TYPES.entries()) {
        // A header value can be empty.
        const text = texts[index] ?? (place === 'header' ? '' : undefined)
        const expected = text === undefined ? 'refused' : expectedIn(place, text) || 'empty'
        const note = others.includes(type) ? ' ("n/a")' : ''
        cells++
        it(`in ${place}, ${style}, explode ${explode}: ${type}${note} is ${expected}`, async () => {
          const sent = await written({ name: 'color', in: place, style, explode }, VALUES[type])
          if (text === undefined) expect(sent).to.match(/^The argument "color" must not be empty/)
          else expect(sent).to.equal(expectedIn(place, text))
        })
      }
    }
  }

  it('cover every cell of the table', () => {
    expect(STYLE_EXAMPLES.map(([style, explode]) => `${style} ${explode}`)).to.have.members(
      Object.keys(PLACES).flatMap(style => [`${style} false`, `${style} true`]),
    )
    expect([cells, undefinedCells]).to.deep.equal([72, 19])
  })

  describe('with other values', () => {
    for (const [what, given, value, expected] of [
      ['numbers and booleans', { in: 'query' }, [1.5, true, -0.25], 'color=1.5&color=true&color=-0.25'],
      ['null, which is left out', { in: 'query' }, null, ''],
      ['items that are null', { in: 'query', explode: false }, ['a', null, 'b'], 'color=a,b'],
      ['an empty array', { in: 'query' }, [], ''],
      ['an empty object', { in: 'query', explode: false }, {}, ''],
      ['delimiters within items', { in: 'query', explode: false }, ['a,b', 'c&d'], 'color=a%2Cb,c%26d'],
      [
        'delimiters of pipes and spaces within items',
        { in: 'query', style: 'pipeDelimited', explode: false },
        ['a|b', 'c d'],
        'color=a%7Cb%7Cc%20d',
      ],
      ['text of any language', { in: 'query' }, 'grün 蓝', 'color=gr%C3%BCn%20%E8%93%9D'],
      ['sub-delimiters', { in: 'query' }, "!'()*", 'color=%21%27%28%29%2A'],
      ['a percent sign', { in: 'query' }, '100%25', 'color=100%2525'],
      [
        'reserved characters with allowReserved',
        { in: 'query', allowReserved: true },
        'a/b?c:d@e,f;g=h$!*()[]&i#j+k%',
        'color=a/b?c:d@e,f;g=h$!*()[]%26i%23j%2Bk%25',
      ],
      [
        'an exploded array of spaces',
        { in: 'query', style: 'spaceDelimited', explode: true },
        ['a', 'b'],
        'color=a&color=b',
      ],
      [
        'nested objects and arrays as deepObject',
        { in: 'query', style: 'deepObject', explode: true },
        { a: { b: 'c' }, d: ['e', 'f'] },
        'color%5Ba%5D%5Bb%5D=c&color%5Bd%5D%5B0%5D=e&color%5Bd%5D%5B1%5D=f',
      ],
      ['an array as deepObject', { in: 'query', style: 'deepObject', explode: true }, ['a'], 'color%5B0%5D=a'],
      ['an object within an array as JSON', { in: 'query' }, [{ a: 1 }], 'color=%7B%22a%22%3A1%7D'],
      [
        'JSON content in a query',
        { in: 'query', contentType: 'application/json' },
        { a: [1] },
        'color=%7B%22a%22%3A%5B1%5D%7D',
      ],
      ['JSON content in a path', { in: 'path', contentType: 'application/json' }, { a: 1 }, '%7B%22a%22%3A1%7D'],
      ['JSON content in a header', { in: 'header', contentType: 'application/json' }, { a: '蓝' }, '{"a":"\\u84dd"}'],
      ['JSON content in a cookie', { in: 'cookie', contentType: 'application/json' }, [1, 2], 'color=%5B1%2C2%5D'],
      ['text content', { in: 'query', contentType: 'text/plain' }, 'a b', 'color=a%20b'],
      ['a slash in a path', { in: 'path' }, 'heads/main', 'heads%2Fmain'],
      ['a cookie with separators', { in: 'cookie' }, 'a;b=c "d"', 'color=a%3Bb%3Dc%20%22d%22'],
    ] as const) {
      it(`send ${what}`, async () => {
        expect(await written({ name: 'color', ...given }, value)).to.equal(expected)
      })
    }

    it('refuse integers that JSON cannot hold exactly', async () => {
      const text = await written({ name: 'color', in: 'query' }, 2 ** 53)
      expect(text).to.match(/^The argument "color" is 9007199254740992, which is beyond 2\^53/)
    })

    it('keep several parameters of one path segment apart', async () => {
      const parameters = [parameter({ name: 'a', in: 'path' }), parameter({ name: 'b', in: 'path' })]
      const { sent } = await sentBy(api, { path: '/x/{a}...{b}.json?fixed=1', parameters }, { a: 'm-n', b: 'o' })
      expect(sent?.url).to.equal('/x/m-n...o.json?fixed=1')
    })

    it('use grouped arguments', async () => {
      const parameters = [parameter({ name: 'q', in: 'query', argument: ['query', 'q'] })]
      const { sent } = await sentBy(api, { parameters }, { query: { q: 'x' } })
      expect(sent?.url).to.equal('/things?q=x')
    })
  })
})
