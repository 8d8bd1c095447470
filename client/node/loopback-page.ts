// What the person's browser shows at the end of a login: a page that says so, keeps nothing and loads nothing.
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'

const STYLE = [
  'body{font:1.1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem;color:#1c1e21;background:#fff}',
  'h1{font-size:1.5rem}',
  '@media (prefers-color-scheme:dark){body{color:#e6e6e6;background:#18191a}}',
].join('')

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}

export interface Page {
  readonly status: number
  readonly title: string
  readonly text: string
}

export const RECEIVED: Page = {
  status: 200,
  title: 'You are logged in',
  text: 'You can close this window and go back to the program that opened it.',
}

// It says no more: the server's words are shown only after the program has checked whose they are.
export const REFUSED: Page = {
  status: 200,
  title: 'You are not logged in',
  text: 'The login ended without permission. The program that opened this window says why; you can close it.',
}

export const UNEXPECTED: Page = {
  status: 400,
  title: 'Nobody waits for this login',
  text: 'It may be over already, or have been started elsewhere. Start it again from the program.',
}

export const NOT_FOUND: Page = { status: 404, title: 'Not found', text: 'There is nothing at this address.' }

export const GET_ONLY: Page = { status: 405, title: 'Method not allowed', text: 'This address answers GET alone.' }

export const OTHER_HOST: Page = {
  status: 421,
  title: 'Another address',
  text: 'This request was meant for another host.',
}

/** Answers with a page and ends the connection. */
export function sendPage(response: ServerResponse, page: Page): void {
  if (page.status === 405) response.setHeader('allow', 'GET')
  response.writeHead(page.status, HEADERS)
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
      `<title>${page.title}</title><style>${STYLE}</style><h1>${page.title}</h1><p>${page.text}</p></html>`,
  )
}
