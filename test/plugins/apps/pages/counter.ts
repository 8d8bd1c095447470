// A page for tests: a module that imports another, a style, and an image of it; and asks for what is none of its business.
import './counter.css'
import { words } from './words.ts'

const main = document.querySelector('#app')
if (main) main.textContent = `${words} ${typeof process === 'undefined'}`
