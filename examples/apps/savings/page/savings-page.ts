// The page of the savings app: draws the result of the tool, and calls the tool again if the user changes the rate.
import './savings.css'
import { draw, type Year } from './chart.ts'
import { type CallToolResult, connect } from './host.ts'

interface Arguments {
  monthly: number
  rate: number
  years: number
  currency?: string
}

const createElement = <Tag extends keyof HTMLElementTagNameMap>(tag: Tag, id: string): HTMLElementTagNameMap[Tag] => {
  const element = document.createElement(tag)
  element.id = id
  return element
}

document.documentElement.lang = 'en'
const heading = document.createElement('h1')
heading.textContent = 'Savings plan'
const picture = createElement('div', 'picture')
const status = createElement('p', 'status')
status.setAttribute('role', 'status')
status.textContent = 'Waiting for numbers.'
const rate = createElement('input', 'rate')
Object.assign(rate, { type: 'range', min: '0', max: '15', step: '0.5', disabled: true })
const label = createElement('label', 'rate-label')
label.htmlFor = rate.id
document.querySelector('#app')?.append(heading, picture, status, label, rate)

let callArguments: Arguments | undefined

/** Inserts results as text, not as HTML. */
function showResult(result: CallToolResult): void {
  const { years, currency = 'EUR' } = (result.structuredContent ?? {}) as { years?: Year[]; currency?: string }
  const text = result.content?.find(({ type }) => type === 'text')?.text ?? ''
  status.textContent = text
  if (!result.isError && years) picture.replaceChildren(draw(years, currency))
}

function showRate(): void {
  label.textContent = `Interest rate: ${rate.value}% per year`
}

const host = connect(
  { name: 'savings', version: '1.0.0' },
  {
    input(args) {
      callArguments = args as unknown as Arguments
      rate.value = String(callArguments.rate)
      rate.disabled = !host.callsTools()
      showRate()
    },
    result: showResult,
    cancelled() {
      status.textContent = 'The call was cancelled.'
    },
    theme(theme) {
      document.documentElement.style.colorScheme = theme
    },
  },
)

rate.addEventListener('input', showRate)
rate.addEventListener('change', async () => {
  if (!callArguments) return
  callArguments = { ...callArguments, rate: Number(rate.value) }
  try {
    showResult(await host.callTool('savings_plan', { ...callArguments }))
  } catch (error) {
    status.textContent = error instanceof Error ? error.message : String(error)
  }
})
