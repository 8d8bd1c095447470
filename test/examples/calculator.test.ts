// The calculator example: right answers, and no way out of arithmetic for whoever writes the expression.
// Bounded work is held by mocha's timeout: an expression that hangs never gets to its answer.
import { expect } from 'chai'
import fc from 'fast-check'
import { ToolError } from 'mcp-host'
import { calculate } from '../../examples/calculator/calculator.ts'
import { evaluate } from '../../examples/calculator/evaluate.ts'
import { callTool, rejectionOf } from './call-tool.ts'

const ask = async (expression: string, variables?: Record<string, unknown>) =>
  (await callTool<{ result: number }>(calculate, { expression, ...(variables && { variables }) })).result

describe('examples/calculator', () => {
  const answers: Array<[expression: string, result: number]> = [
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['2 ^ 3 ^ 2', 512],
    ['-2 ^ 2', -4],
    ['10 % 4', 2],
    ['5!', 120],
    ['1.5e3 / 2', 750],
    ['roundTo(2 * pi, 2)', 6.28],
    ['max(1, sqrt(16), 3)', 4],
    ['ln(e)', 1],
    ['cos(0) + sin 0', 1],
  ]
  for (const [expression, result] of answers) {
    it(`answers ${result} to ${expression}`, async () => {
      expect(await ask(expression)).to.equal(result)
    })
  }

  it('puts variables in', async () => {
    expect(await ask('price * (1 + rate) ^ years', { price: 100, rate: 0.5, years: 2 })).to.equal(225)
  })

  it('does what numbers do, for any two of them', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (x, y) => {
        expect(evaluate('x * y - x + y', { x, y })).to.equal(x * y - x + y || 0)
      }),
    )
  })

  describe('refuses, with an error the model may read,', () => {
    const refusals: Array<[what: string, expressions: string[]]> = [
      ['results that no double holds', ['9^9^9^9', '1e308 * 10', '171!', '1000000000!', '5!!!!!!', '1/0', '1e999']],
      ['results that are undefined', ['0/0', 'sqrt(-1)', '(-8)^(1/3)']],
      ['results that are no number', ['sin', 'max']],
      ['broken expressions', ['1 +', '(1', '1)', '2 3', '()', ' ', '1 ** 2', 'sin(1, 2)', 'unknown + 1']],
      [
        'ways to a prototype',
        [
          'constructor',
          '__proto__',
          'toString',
          'sin.constructor',
          'pi.constructor',
          'valueOf()',
          'hasOwnProperty(1)',
          'constructor(1)',
          'prototype',
          'lambda_0(1)',
          '__counter',
        ],
      ],
      ['strings, arrays and escapes', ['"a"', "'a'", '[1]', 'sin[0]', '\\u0063onstructor', '`a`', '\u0661']],
      ['definitions and statements', ['x = 1', 'f(x) = f(x)', '1; 2', '1 == 1 ? 1 : 2', '1 and 1', '1 in 2', 'not 1']],
      [
        'functions that are off',
        ['random()', 'map(sin, 1)', 'fold(max, 1, 2)', 'gamma(3)', 'fac(3)', 'length 3', 'if(1, 2, 3)'],
      ],
    ]
    for (const [what, expressions] of refusals) {
      it(what, async () => {
        for (const expression of expressions) {
          expect(await rejectionOf(ask(expression)), expression).to.be.instanceOf(ToolError)
        }
      })
    }

    it('a variable that would hide a function or a constant', async () => {
      for (const name of ['e', 'pi', 'sin', 'max']) {
        expect(await rejectionOf(ask(`${name} + 1`, { [name]: 1 })), name).to.be.instanceOf(ToolError)
      }
    })
  })

  it('takes no variable that is not a number or has a name with a meaning to JavaScript', async () => {
    const stray = [
      { x: '1' },
      { x: {} },
      { x: null },
      JSON.parse('{ "__proto__": 1 }'),
      { 'a.b': 1 },
      { ['x'.repeat(33)]: 1 },
    ]
    for (const variables of stray) {
      expect(await rejectionOf(ask('1', variables)), JSON.stringify(variables)).to.be.instanceOf(TypeError)
    }
    for (const name of ['constructor', 'prototype', 'toString']) {
      expect(await rejectionOf(ask(name, { [name]: 1 })), name).to.be.instanceOf(ToolError)
    }
  })

  it('takes no expression longer than 500 characters', async () => {
    expect(await ask('1'.padEnd(500))).to.equal(1)
    expect(await rejectionOf(ask('1'.padEnd(501)))).to.be.instanceOf(TypeError)
  })

  it('ends with an answer or a refusal for the deepest and densest expressions of that length', () => {
    const dense = [
      `${'('.repeat(249)}1${')'.repeat(249)}`,
      `${'sin('.repeat(100)}1${')'.repeat(99)})`,
      `${'max(1,'.repeat(71)}1${')'.repeat(71)}`,
      `${'-'.repeat(499)}1`,
      `${'!'.repeat(499)}1`,
      `3${'!'.repeat(499)}`,
      `9${'^9'.repeat(249)}`,
      `${'2^('.repeat(120)}1${')'.repeat(120)}`,
      `${'sin '.repeat(124)}1`,
      '('.repeat(500),
      '1,'.repeat(250),
      '.'.repeat(500),
      '9'.repeat(500),
      'x'.repeat(500),
    ]
    for (const expression of dense) {
      let outcome: unknown
      try {
        outcome = evaluate(expression)
      } catch (error) {
        outcome = error
      }
      expect(typeof outcome === 'number' || ToolError.is(outcome), `${expression.slice(0, 20)}: ${outcome}`).to.equal(
        true,
      )
    }
  })

  it('gives a finite number or a ToolError for any text, and leaves prototypes as they were', () => {
    const words = [
      '1',
      '2.5',
      'x',
      'sin',
      'max',
      '(',
      ')',
      ',',
      '+',
      '-',
      '^',
      '!',
      '.',
      ' ',
      '=',
      '[',
      ']',
      ';',
      '"',
      '__proto__',
      'constructor',
      'prototype',
    ]
    const text = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom(...words), { maxLength: 30 }).map(parts => parts.join('')),
    )
    fc.assert(
      fc.property(text, expression => {
        try {
          expect(Number.isFinite(evaluate(expression, { x: 3 }))).to.equal(true)
        } catch (error) {
          if (!ToolError.is(error)) throw error
        }
      }),
      { numRuns: 500 },
    )
    expect(Object.keys(Object.prototype)).to.deep.equal([])
    expect(evaluate('1 + 1')).to.equal(2)
  })
})
