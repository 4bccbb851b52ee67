// First in the page: notes what the page's own script and style break.
var faults = [];
window.addEventListener('error', function (event) { faults.push('error: ' + (event.message || event.target)); }, true);
window.addEventListener('unhandledrejection', function (event) { faults.push('rejected: ' + event.reason); });
document.addEventListener('securitypolicyviolation', function (event) { faults.push('refused: ' + event.violatedDirective); });
['error', 'warn'].forEach(function (name) {
  console[name] = function () { faults.push('console.' + name + ': ' + [].join.call(arguments, ' ')); };
});
