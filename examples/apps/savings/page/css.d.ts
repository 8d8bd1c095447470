// What the bundler makes of a style that is imported: a part of the page.
declare module '*.css'
