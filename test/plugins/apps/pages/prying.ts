// A page for tests that tries to reach another server in every way that a page has, and says what came of it.

interface Violation {
  directive: string
  uri: string
}

const violations: Violation[] = []
document.addEventListener('securitypolicyviolation', event => {
  violations.push({ directive: event.effectiveDirective, uri: event.blockedURI })
  report()
})

function report() {
  document.body.dataset['violations'] = JSON.stringify(violations)
}

function add(tag: string, attributes: Record<string, string>) {
  const element = document.createElement(tag)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  document.body.append(element)
}

function pry(to: string) {
  const tries: Array<[way: string, attempt: () => unknown]> = [
    ['fetch', () => fetch(`${to}/fetch`, { mode: 'no-cors' })],
    [
      'xhr',
      () => {
        const request = new XMLHttpRequest()
        request.open('GET', `${to}/xhr`)
        request.send()
      },
    ],
    ['beacon', () => navigator.sendBeacon(`${to}/beacon`, 'secret')],
    ['websocket', () => new WebSocket(`${to.replace('http', 'ws')}/websocket`)],
    ['eventsource', () => new EventSource(`${to}/eventsource`)],
    ['image', () => add('img', { src: `${to}/image.png`, alt: '' })],
    ['script', () => add('script', { src: `${to}/script.js` })],
    ['style', () => add('link', { rel: 'stylesheet', href: `${to}/style.css` })],
    ['font', () => new FontFace('prying', `url(${to}/font.woff2)`).load()],
    ['media', () => add('video', { src: `${to}/media.mp4`, autoplay: '' })],
    ['frame', () => add('iframe', { src: `${to}/frame` })],
    ['object', () => add('object', { data: `${to}/object` })],
    ['import', () => import(`${to}/import.js`)],
    ['worker', () => new Worker(`${to}/worker.js`)],
    [
      'form',
      () => {
        add('form', { action: `${to}/form`, id: 'form', target: '_self' })
        document.querySelector<HTMLFormElement>('#form')?.submit()
      },
    ],
  ]
  for (const [, attempt] of tries) {
    try {
      void Promise.resolve(attempt()).catch(() => undefined)
    } catch {
      // What is refused at once.
    }
  }
  document.body.dataset['tried'] = String(tries.length)
  report()
}

window.addEventListener('message', ({ data }) => {
  if (data?.method === 'ui/notifications/tool-result') pry(data.params.structuredContent.to)
})

const id = 1
window.addEventListener('message', ({ data }) => {
  if (data?.id === id) window.parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/initialized' }, '*')
})
const params = { appInfo: { name: 'prying', version: '1.0.0' }, appCapabilities: {}, protocolVersion: '2026-01-26' }
window.parent.postMessage({ jsonrpc: '2.0', id, method: 'ui/initialize', params }, '*')
