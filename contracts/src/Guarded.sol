// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControlDefaultAdminRules} from
    "@openzeppelin/contracts/access/extensions/AccessControlDefaultAdminRules.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";

/// @title Quick to stop, slow to start again.
/// @notice A guardian pauses alone and at once; only the admin (a multisig or timelock) unpauses.
/// @dev The admin role moves in two steps with a delay, by OpenZeppelin's AccessControlDefaultAdminRules.
abstract contract Guarded is AccessControlDefaultAdminRules, Pausable {
    /// @notice May pause, and in RewardsDistributor veto a root. Never held by the proposer.
    bytes32 public constant GUARDIAN_ROLE = keccak256("GUARDIAN_ROLE");

    /// @notice An address that must not be zero is zero.
    /// @param parameter Which constructor parameter it was.
    error ZeroAddress(string parameter);

    /// @param admin First holder of DEFAULT_ADMIN_ROLE.
    /// @param adminDelayS Seconds between the two steps of a transfer of that role.
    constructor(address admin, uint48 adminDelayS) AccessControlDefaultAdminRules(adminDelayS, admin) {}

    /// @notice Stops every act marked whenNotPaused.
    function pause() external onlyRole(GUARDIAN_ROLE) {
        _pause();
    }

    /// @notice Starts them again.
    function unpause() external onlyRole(DEFAULT_ADMIN_ROLE) {
        _unpause();
    }

    /// @dev For constructors: an address that cannot be changed later is checked once, here.
    function _notZero(address given, string memory parameter) internal pure returns (address) {
        require(given != address(0), ZeroAddress(parameter));
        return given;
    }
}
